"""Which chat model answers, and what is said about it."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agentic_rag.config import Settings
from agentic_rag.errors import AragError
from agentic_rag.models import fetch
from agentic_rag.models.chat import ChatModel, ModelUnavailable, resolve_chat_model
from agentic_rag.models.embedded import ModelFileUnusable

NOWHERE = {"OLLAMA_HOST": "127.0.0.1:1", "ARAG_MODELS": "/nowhere"}


@pytest.fixture(autouse=True)
def _no_keys_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE", "DEEPSEEK", "GROQ", "MISTRAL"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def chosen(env: dict[str, str] | None = None, **settings: str) -> ChatModel:
    return resolve_chat_model(Settings(**settings), NOWHERE | (env or {}))  # type: ignore[arg-type]


@pytest.fixture
def ollama() -> Iterator[str]:
    """The address of something that lists models as Ollama does."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            names = ["nomic-embed-text:latest", "qwen3:4b", "llama3.2:3b"]
            body = json.dumps({"models": [{"name": name} for name in names]}).encode()
            self.send_response(200 if self.path == "/api/tags" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            can = ["completion", "tools"] if asked["model"].startswith("qwen") else ["completion"]
            shown = {"capabilities": can, "model_info": {"qwen3.context_length": 40960}}
            if asked["model"].endswith("wide"):
                shown["parameters"] = 'stop    "<|im_end|>"\nnum_ctx    16384\n'
            body = json.dumps(shown).encode()
            self.send_response(200 if self.path == "/api/show" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def fetched(tmp_path: Path) -> dict[str, str]:
    """An environment where the embedded model seems fetched: a sparse file of its size."""
    with (tmp_path / fetch.MODEL_FILE).open("wb") as file:
        file.write(b"GGUF")
        file.truncate(fetch.MODEL_BYTES)
    return {"ARAG_MODELS": str(tmp_path)}


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("OPENAI_API_KEY", "openai:gpt-6-luna"),
        ("ANTHROPIC_API_KEY", "anthropic:claude-haiku-5-5"),
        ("GEMINI_API_KEY", "gemini:gemini-3.8-flash"),
        ("GOOGLE_API_KEY", "gemini:gemini-3.8-flash"),
        ("DEEPSEEK_API_KEY", "deepseek:deepseek-flash"),
    ],
)
def test_a_key_in_the_environment_chooses_its_provider(key: str, name: str) -> None:
    chat = chosen({key: "sk-secret"})

    assert chat.name == name
    assert f"{key} is set" in chat.why
    assert "sk-secret" not in repr(chat)


def test_the_default_models_are_ones_that_pydantic_ai_knows() -> None:
    from pydantic_ai.models import known_model_names

    known = {name.partition(":")[2] for name in known_model_names()}
    assert {"gpt-6-luna", "claude-haiku-5-5", "gemini-3.8-flash", "deepseek-flash"} <= known


def test_the_setting_wins_over_keys() -> None:
    chat = chosen(
        {"OPENAI_API_KEY": "k", "DEEPSEEK_API_KEY": "k"}, model="deepseek:deepseek-v4-pro"
    )

    assert chat.name == "deepseek:deepseek-v4-pro"
    assert chat.why == 'The setting `model` is "deepseek:deepseek-v4-pro".'


def test_ollama_on_this_machine_comes_next_with_its_first_chat_model(ollama: str) -> None:
    chat = chosen({"OLLAMA_HOST": ollama})

    assert chat.name == "ollama:qwen3:4b"
    assert "Ollama runs on this machine" in chat.why
    assert chat.cost == 0.0


@pytest.mark.parametrize(("model", "tools"), [("qwen3:4b", True), ("llama3.2:3b", False)])
def test_ollama_says_which_of_its_models_can_call_tools(
    ollama: str, model: str, tools: bool
) -> None:
    assert chosen({"OLLAMA_HOST": ollama}, model=f"ollama:{model}").tools is tools
    assert chosen({}, model=f"ollama:{model}").tools is False  # it does not answer


@pytest.mark.parametrize(("model", "context"), [("qwen3:4b", 4096), ("qwen3:wide", 16384)])
def test_the_context_of_ollama_is_what_the_model_s_own_file_says_else_its_default(
    ollama: str, model: str, context: int
) -> None:
    chat = chosen({"OLLAMA_HOST": ollama}, model=f"ollama:{model}")

    assert chat.context_tokens == context
    assert chat.passage_tokens == int(context * 0.6)
    assert "OLLAMA_CONTEXT_LENGTH" in chat.more_context
    assert "`context_tokens`" in chat.more_context
    assert "up to 40,960" in chat.more_context


def test_a_context_that_is_set_counts_for_every_model(ollama: str) -> None:
    settings = Settings(model="ollama:qwen3:4b", context_tokens=32768)
    chat = resolve_chat_model(settings, NOWHERE | {"OLLAMA_HOST": ollama})
    own = Settings(model="qwen3", base_url="http://127.0.0.1:1/v1", context_tokens=8192)

    assert (chat.context_tokens, chat.passage_tokens) == (32768, 19660)
    assert resolve_chat_model(own, NOWHERE).context_tokens == 8192
    assert chosen({"OPENAI_API_KEY": "k"}).context_tokens is None


def test_hosted_models_are_taken_to_call_tools_and_the_demonstration_model_is_not(
    fetched: dict[str, str],
) -> None:
    assert chosen({"OPENAI_API_KEY": "k"}).tools
    assert not chosen(fetched).tools
    assert not chosen().tools


def test_then_the_embedded_model_if_it_was_fetched(fetched: dict[str, str]) -> None:
    chat = chosen(fetched)

    assert (chat.name, chat.demonstration) == ("local", True)
    assert "demonstration model" in chat.why


def test_then_none_and_how_to_get_one() -> None:
    chat = chosen()

    assert (chat.name, chat.connect) == ("none", None)
    assert "best passages are the answer" in chat.why
    assert "arag models fetch" in chat.hint


def test_none_asked_for_is_none_whatever_is_there() -> None:
    chat = chosen({"OPENAI_API_KEY": "k"}, model="none")

    assert (chat.name, chat.connect, chat.hint) == ("none", None, "")


def test_local_before_it_was_fetched_says_how_to_fetch_it() -> None:
    with pytest.raises(ModelUnavailable, match="run `arag models fetch`"):
        chosen(model="local")


@pytest.mark.parametrize(
    ("content", "why"), [(None, "does not exist"), (b"PK\x03\x04 zip", "is not a GGUF model")]
)
def test_a_local_file_that_is_no_model_is_named(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    path = tmp_path / "some.gguf"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ModelFileUnusable, match=f"some.gguf {why}"):
        chosen(model=f"local:{path}")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("gpt-6-luna", "'gpt-6-luna' is not known; did you mean"),
        ("magic", "'magic' is not known; write provider:name"),
        ("qwen2:7b", "A model of Ollama is written ollama:qwen2:7b; one of a server of your own"),
        ("nobody:some-model", "'nobody:some-model' is not known"),
        ("openai:gpt-6-luna", "put it in the environment variable OPENAI_API_KEY"),
        ("anthropic:claude-haiku-5-5", "environment variable ANTHROPIC_API_KEY"),
        ("gemini:gemini-3.8-flash", "environment variable GEMINI_API_KEY"),
        ("openai:", "'openai:' names no model; write for example 'openai:gpt-6-luna'."),
        ("local:", "write for example 'local:/path/to.gguf'."),
        ("openrouter:x", "needs the environment variable OPENROUTER_API_KEY; set it."),
    ],
)
def test_a_model_that_cannot_be_used_is_one_clear_sentence(model: str, said: str) -> None:
    with pytest.raises(AragError) as caught:
        chosen(model=model)

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("server", ["", "http://127.0.0.1:8000/v1"])
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("opnai:test", "openai:test"),
        ("opneai:test", "openai:test"),
        ("OpenAI:test", "openai:test"),
        ("open-ai:gpt-6-luna", "openai:gpt-6-luna"),
        ("antropic:claude-haiku-5-5", "anthropic:claude-haiku-5-5"),
        ("olama:qwen2:7b", "ollama:qwen2:7b"),
        ("deepsek:deepseek-flash", "deepseek:deepseek-flash"),
        ("locl:/path/to.gguf", "local:/path/to.gguf"),
    ],
)
def test_a_mistyped_provider_is_answered_with_the_right_one(
    typed: str, meant: str, server: str
) -> None:
    wrong = typed.partition(":")[0]
    with pytest.raises(ModelUnavailable, match=f"no provider '{wrong}'; did you mean {meant}"):
        chosen({"OPENAI_API_KEY": "k"}, model=typed, base_url=server)


@pytest.mark.parametrize(
    "model",
    [
        *("qwen2:7b", "llama:7b", "gemma:2b", "codellama:7b", "openchat:7b", "deepseek-vl:7b"),
        *("mistral:7b", "org/openai:x", "gpt-4", "openai:opnai:test"),
    ],
)
def test_a_server_of_your_own_may_call_its_models_as_it_likes(model: str) -> None:
    chat = chosen(model=model, base_url="http://127.0.0.1:8000/v1")

    assert chat.name == f"openai:{model.removeprefix('openai:')}"


def test_a_missing_package_is_named_with_what_to_run() -> None:
    pytest.importorskip("pydantic_ai")
    try:
        import groq  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        with pytest.raises(ModelUnavailable, match=r'pip install "pydantic-ai-slim\[groq\]"'):
            chosen(model="groq:some-model")
    else:
        pytest.skip("groq is installed here")


def test_a_key_whose_package_is_missing_does_not_keep_the_rest_from_working(
    monkeypatch: pytest.MonkeyPatch, fetched: dict[str, str]
) -> None:
    import sys

    for name in [n for n in sys.modules if n.startswith(("anthropic", "pydantic_ai"))]:
        if "anthropic" in name:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    chat = chosen({"ANTHROPIC_API_KEY": "k", **fetched})

    assert chat.name == "local"
    assert "ANTHROPIC_API_KEY is set, but" in chat.hint


def test_any_server_of_the_protocol_serves_by_base_url() -> None:
    chat = chosen(model="openai:qwen", base_url="http://user:word@127.0.0.1:8000/v1")

    assert chat.name == "openai:qwen"
    assert chat.why == 'The setting `model` is "openai:qwen", at http://127.0.0.1:8000/v1.'


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"base_url": "http://127.0.0.1:8000/v1"}, "`model` is empty"),
        ({"base_url": "127.0.0.1:8000", "model": "m"}, "is no http address"),
        ({"base_url": "http://[::", "model": "m"}, "is no http address"),
        (
            {"base_url": "http://h/v1", "model": "m", "api_key_env": "NO_SUCH"},
            "names NO_SUCH, which is not set",
        ),
    ],
)
def test_a_base_url_that_cannot_work_says_why(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ModelUnavailable, match=said):
        chosen(**settings)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:5000", "http://127.0.0.1:5000"),
        ("http://box:1234/", "http://box:1234"),
        ("https://box", "https://box:443"),
        ("[::1]:99", "http://[::1]:99"),
        ("http://[bad", "http://127.0.0.1:11434"),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(host: str, address: str) -> None:
    from agentic_rag.models.ollama import base_address

    assert base_address({"OLLAMA_HOST": host}) == address


@pytest.mark.parametrize("name", ["ollama:qwen3", "gemini:flash", "deepseek:chat"])
def test_a_provider_beside_a_base_url_is_refused(name: str) -> None:
    settings = Settings(base_url="http://127.0.0.1:9/v1", model=name)
    with pytest.raises(ModelUnavailable, match=f"two places; unset one .* openai:{name}"):
        resolve_chat_model(settings, {})


def test_the_tag_of_a_model_beside_a_base_url_goes_on() -> None:
    settings = Settings(base_url="http://127.0.0.1:9/v1", model="qwen2:7b")
    assert resolve_chat_model(settings, {}).name == "openai:qwen2:7b"
