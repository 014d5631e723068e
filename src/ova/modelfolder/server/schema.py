"""What the server takes and gives, for OpenAPI: exact for the kind and the columns of its model."""

from typing import Any

from pydantic import BaseModel, Field

from ova.modelfolder.asking import wanted
from ova.modelfolder.folder import Model
from ova.modelfolder.server.asked import FORM, JSON, named
from ova.modelfolder.server.limits import Limits

Schema = dict[str, Any]


class Near(BaseModel):
    """A training row, and how far from it the input is (0 to 2)."""

    example: str
    distance: float


class Likely(BaseModel):
    """A class and its probability, uncalibrated."""

    label: str
    p: float


class Answered(BaseModel):
    """What the model says about one input."""

    id: str = Field(description="Names the row in the log.")
    label: str | None = Field(
        description="null: none of the above, or an input that cannot be used."
    )
    best_guess: str | None = Field(description="The label, unless the input is refused.")
    confidence: float | None = Field(
        description="Of the best guess; calibrated where the model is."
    )
    runner_up: str | None
    runner_up_confidence: float | None
    score: float | None = Field(description="What the threshold of the model is compared with.")
    refused: str | None = Field(description="Why the input is none of the above.")
    problem: str | None = Field(description="Why the input cannot be used.")
    classes: list[Likely] | None = Field(default=None, description="Those of the largest p.")
    nearest: list[Near] | None = Field(default=None, description="Where explain=true.")


class Answers(BaseModel):
    """An answer for each input, in their order."""

    answers: list[Answered]
    model: str = Field(description="The first letters of the model's hash.")


class Problem(BaseModel):
    """Why there is no answer, in one sentence."""

    error: str


class State(BaseModel):
    """How the server is."""

    status: str


class Column(BaseModel):
    """A column of a table; without words, of numbers."""

    name: str
    words: list[str]


class Facts(BaseModel):
    """What the model is, and what it promises."""

    kind: str
    inputs: str = Field(description="What inputs are called in a request: texts, rows or images.")
    classes: list[str]
    columns: list[Column]
    formulation: str
    score: str = Field(description="What the threshold is compared with.")
    promise: list[str]
    calibrated: bool
    nearest: bool = Field(description="Whether explain=true can name training rows.")
    model: str
    limits: dict[str, int | float]


SAID = {
    400: "The body cannot be read.",
    401: "The token is missing or wrong.",
    403: "The request came by a name, or from a site, that may not ask.",
    408: "The body did not arrive in time.",
    413: "Too many bytes, rows, characters or pixels.",
    415: "The inputs were sent in a way in which this model takes none.",
    422: "The inputs or the options are not what they should be, or no input can be used.",
    500: "The server failed, which it should not.",
    503: "Too much waits, the log cannot be written, or the server stops.",
}


def problems(*statuses: int) -> dict[int | str, Schema]:
    """The descriptions of refusals."""
    return {status: {"model": Problem, "description": SAID[status]} for status in statuses}


def body(model: Model, limits: Limits) -> Schema:
    """What a request to predict holds."""
    name = named(model)
    some = {"type": "array", "minItems": 1, "maxItems": limits.rows}
    file = {"type": "string", "format": "binary", "contentMediaType": "application/octet-stream"}
    if name == "images":
        content = {FORM: one(name, some | {"items": file})}
    else:
        item = text(limits) if name == "texts" else row(model, limits)
        content = {JSON: one(name, some | {"items": item}), FORM: one("file", file)}
    return {"requestBody": {"required": True, "content": content}}


def one(name: str, schema: Schema) -> Schema:
    """An object with one part and nothing else."""
    whole = {"type": "object", "properties": {name: schema}, "required": [name]}
    return {"schema": whole | {"additionalProperties": False}}


def text(limits: Limits) -> Schema:
    """A text that is not empty."""
    return {"type": "string", "minLength": 1, "maxLength": limits.letters, "pattern": r"\S"}


def row(model: Model, limits: Limits) -> Schema:
    """A row with a value, or null for a gap, in each column."""
    cell = {"type": ["number", "string", "boolean", "null"], "maxLength": limits.letters}
    columns = wanted(model)
    whole = {"type": "object", "properties": dict.fromkeys(columns, cell), "required": columns}
    return whole | {"additionalProperties": False}
