"""`/docs`: what the API takes and gives, written from the OpenAPI document, without a script."""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

_HERE = Path(__file__).parent
_STYLE = "docs.css"

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """The page."""
    style = (_HERE / _STYLE).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; frame-ancestors 'none'"
    page = _template().render(style=Markup(style), **_contents(request.app.openapi()))
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


@cache
def _template() -> Any:
    loader = FileSystemLoader(_HERE)
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return made.get_template("docs.html.j2")


def _contents(schema: dict[str, Any]) -> dict[str, Any]:
    """What the page shows: operations in groups, then the shapes they take and give."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            shown = _operation(method.upper(), path, operation)
            groups.setdefault(operation.get("tags", ["Others"])[0], []).append(shown)
    shapes = schema.get("components", {}).get("schemas", {})
    return {
        "title": schema["info"]["title"],
        "groups": groups,
        "shapes": {name: _shape(shape) for name, shape in sorted(shapes.items())},
    }


def _operation(method: str, path: str, operation: dict[str, Any]) -> dict[str, Any]:
    body = operation.get("requestBody", {}).get("content", {})
    return {
        "method": method,
        "path": path,
        "summary": operation.get("summary", ""),
        "description": operation.get("description", ""),
        "parameters": [
            {
                "name": one["name"],
                "type": _type(one.get("schema", {})),
                "required": one.get("required", False),
                "description": one.get("description", ""),
            }
            for one in operation.get("parameters", ())
        ],
        "body": {kind: _type(content.get("schema", {})) for kind, content in body.items()},
        "responses": {
            status: {
                "description": response.get("description", ""),
                "content": {
                    kind: _type(content.get("schema", {}))
                    for kind, content in response.get("content", {}).items()
                },
            }
            for status, response in operation.get("responses", {}).items()
        },
    }


def _shape(shape: dict[str, Any]) -> dict[str, Any]:
    required = shape.get("required", ())
    return {
        "description": shape.get("description", ""),
        "type": _type({key: value for key, value in shape.items() if key != "properties"}),
        "fields": [
            (name, _type(field), name in required, field.get("description", ""))
            for name, field in shape.get("properties", {}).items()
        ],
    }


def _type(schema: dict[str, Any]) -> str:
    """A JSON schema in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[several]))
    if "enum" in schema or "const" in schema:
        return " or ".join(f'"{value}"' for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "any")
