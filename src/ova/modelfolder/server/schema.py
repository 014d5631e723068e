"""What the server takes and gives, for OpenAPI: exact for the kind and the columns of its model."""

from dataclasses import dataclass
from typing import Any

from ova.modelfolder.asking import wanted
from ova.modelfolder.folder import Model
from ova.modelfolder.server.asked import FORM, JSON, named
from ova.modelfolder.server.limits import Limits

Schema = dict[str, Any]


@dataclass(frozen=True)
class Near:
    """A training row, and how far from it the input is (0 to 2)."""

    example: str
    distance: float


@dataclass(frozen=True)
class Likely:
    """A class and its probability, uncalibrated."""

    label: str
    p: float


@dataclass(frozen=True)
class Answered:
    """What the model says about one input.

    The id names its row in the log. The label is null where the input is none of the above
    (`refused` says why) or cannot be used (`problem` does). The best guess is the label, or what it
    would have been, and the confidence is the guess's, calibrated where the model is. The score is
    what the threshold of the model is compared with.
    """

    id: str
    label: str | None
    best_guess: str | None
    confidence: float | None
    runner_up: str | None
    runner_up_confidence: float | None
    score: float | None
    refused: str | None
    problem: str | None
    classes: list[Likely] | None = None  # those of the largest p
    nearest: list[Near] | None = None


@dataclass(frozen=True)
class Answers:
    """An answer for each input, in their order, and the first letters of the model's hash."""

    answers: list[Answered]
    model: str


@dataclass(frozen=True)
class Problem:
    """Why there is no answer, in one sentence."""

    error: str


@dataclass(frozen=True)
class State:
    """How the server is."""

    status: str


@dataclass(frozen=True)
class Column:
    """A column of a table; without words, of numbers."""

    name: str
    words: list[str]


@dataclass(frozen=True)
class Facts:
    """What the model is, and what it promises.

    `inputs` is what inputs are called in a request: texts, rows or images; `score` what the
    threshold is compared with; `nearest` whether explain=true can name training rows; `unwatched`
    why /metrics has no alarms.
    """

    kind: str
    inputs: str
    classes: list[str]
    columns: list[Column]
    formulation: str
    score: str
    promise: list[str]
    calibrated: bool
    nearest: bool
    model: str
    unwatched: str | None
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
