"""The quality of what was retrieved: four dimensions of 0 to 10, judged by a model, summed here.

The threshold is applied in code: a model asked whether something passes says yes too often.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

DIMENSIONS = ("relevance", "completeness", "accuracy", "coverage")
MOST = 10 * len(DIMENSIONS)


def _on_its_scale(value: Any) -> Any:
    """A score, also where a model wrote "8" or "8/10". Anything else is left to be refused: a
    number without its scale, or of another one, says nothing."""
    if isinstance(value, bool):
        raise ValueError("a score is a number")
    if isinstance(value, str):
        shown, slash, scale = value.strip().partition("/")
        if slash and scale.strip() not in ("10", "10.0"):
            raise ValueError("a score is of 10")
        return float(shown)
    return value


class Judgement(BaseModel):
    """One dimension: a score of 0 to 10, and why."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    score: Annotated[float, BeforeValidator(_on_its_scale), Field(ge=0, le=10)]
    reason: str = ""

    @model_validator(mode="before")
    @classmethod
    def _bare_number(cls, data: Any) -> Any:
        return data if isinstance(data, dict) else {"score": data}


class Quality(BaseModel):
    """An evaluation. Each dimension must be there by its name."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    relevance: Judgement
    completeness: Judgement
    accuracy: Judgement
    coverage: Judgement
    suggestions: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _suggestions_as_list(cls, data: Any) -> Any:
        if isinstance(data, dict):
            given = data.get("suggestions")
            listed = [given] if isinstance(given, str) else given
            kept = (
                [s.strip() for s in listed if isinstance(s, str) and s.strip()]
                if isinstance(listed, list)
                else []
            )
            return {**data, "suggestions": kept[:5]}
        return data

    @property
    def total(self) -> float:
        """The sum, of 40."""
        dimensions = (self.relevance, self.completeness, self.accuracy, self.coverage)
        return sum(judgement.score for judgement in dimensions)
