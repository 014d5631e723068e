"""The log that `ova monitor` reads: what `ova predict` wrote, or a server, with labels for some rows."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ova.errors import BadInput, pick
from ova.files import checked, decoded, parsed, reading
from ova.modelfolder.answer import kept
from ova.modelfolder.server.log import COLUMNS
from ova.modelfolder.write import inert
from ova.posthoc.certificates import Counts, Floats, Truths
from ova.predictions import NONE, NONE_LABEL

UNLABELLED = -2  # the target of a row whose label is not known, or not yet
DIGITS = 6  # of a score, as CSV has them: scores of all formats are compared at these
SCORE, GUESS, ANSWER, TIME = "score", "best_guess", "label", "time"
LABELS = (kept("label"), "truth", "target")  # where the log has its labels, unless it is said
# What a server says besides, under names that no column of anybody's has.
SERVED = {"model": "model (served)", "threshold": "threshold (served)"}
MODEL, THRESHOLD = SERVED.values()
HASHED = 12  # letters of a model's hash that a server writes
PIECE = 1 << 24  # bytes of a log that are read at a time where its rows need not be kept


@dataclass(frozen=True, eq=False)
class Log:
    """The rows that have a score, in order; `classes` and labels by number."""

    score: Floats
    guess: Counts | None  # the class of each row, whether it is answered or refused
    answer: Counts  # the class that was answered, NONE where none was
    target: Counts  # NONE is none of the classes, UNLABELLED what is not known
    when: Sequence[str | None]  # the time of each row, where the log says it
    own: Truths  # whether the model's own threshold decided, as far as the log says
    skipped: int = 0  # rows that could not be used when they came
    others: int = 0  # rows that a server wrote with another model
    strange: int = 0  # labels that no class has

    def __len__(self) -> int:
        return len(self.score)


@dataclass(frozen=True)
class Labels:
    """Where the labels are: in a column of the log, or in a file of ids and labels."""

    column: str = ""
    file: Path | None = None
    id: str = "id"


def read_log(paths: Sequence[Path], classes: Sequence[str], labels: Labels, model: str = "") -> Log:
    """All rows of the files, one file after another; of a server's those of the model with this hash."""
    wanted = [SCORE, GUESS, ANSWER, TIME, *([labels.column] if labels.column else LABELS)]
    wanted += [labels.id, kept(labels.id)] if labels.file else []
    table = pa.concat_tables(
        [of_file(path, [*dict.fromkeys(wanted)]) for path in paths], promote_options="permissive"
    )
    if labels.column and labels.column not in table.column_names and not labels.file:
        have = ", ".join(map(repr, table.column_names))
        raise BadInput(
            f"{paths[0]}: there is no column {labels.column!r} (--label); there is {have}"
        )
    return of_table(table, classes, labels, model, paths[0])


def served(path: Path, classes: Sequence[str], model: str) -> Iterator[Log]:
    """The rows that a server wrote with a model, without labels and times, some at a time."""
    with path.open("rb") as file:
        while lines := file.readlines(PIECE):
            table = of_lines(path, b"".join(lines), (SCORE, GUESS, ANSWER, *SERVED))
            yield of_table(as_text(named(table)), classes, Labels(), model, path)


def of_table(
    table: pa.Table, classes: Sequence[str], labels: Labels, model: str, source: Path
) -> Log:
    """The rows of a table with the columns of a log."""
    if SCORE not in table.column_names or ANSWER not in table.column_names:
        raise BadInput(
            f"{source} is no log of answers: it has no columns `score` and `label`; "
            "`ova predict --out` writes them"
        )
    every = len(table)
    if model and MODEL in table.column_names:
        table = table.filter(pc.equal(table[MODEL], model[:HASHED]))
    score = np.asarray(table[SCORE].to_numpy(), np.float64)  # NaN where there is none
    used = np.isfinite(score)
    said, names = filled(table[ANSWER]), [*map(str, classes)]
    answered = np.asarray(pc.fill_null(pc.not_equal(said, NONE_LABEL), False))
    answer = np.where(answered, places(said, names), NONE)
    if (wrong := np.flatnonzero(used & answered & (answer < 0))).size:
        name = said[int(wrong[0])].as_py()
        raise BadInput(f"{name!r} is no class of the model; another model wrote this log")
    target, strange = targets(table, labels, names)
    guess = None
    if GUESS in table.column_names:
        guess = places(table[GUESS], names)
        if (guess[used] < 0).any():
            raise BadInput("a `best_guess` of the log is no class of the model; another wrote it")
        guess = guess[used]
    asked = THRESHOLD in table.column_names
    own = np.asarray(pc.is_null(table[THRESHOLD])) if asked else np.ones(len(score), bool)
    when = table[TIME].to_pylist() if TIME in table.column_names else [None] * len(score)
    return Log(
        score=rounded(score[used]),
        guess=guess,
        answer=answer[used],
        target=target[used],
        when=[when[row] for row in np.flatnonzero(used)] if not used.all() else when,
        own=own[used],
        skipped=int((~used).sum()),
        others=every - len(table),
        strange=strange,
    )


def targets(table: pa.Table, labels: Labels, names: Sequence[str]) -> tuple[Counts, int]:
    """The label of each row by number, and how many are of none of the classes by another name."""
    if labels.file:
        known = beside(table, labels)
    else:
        places_ = [labels.column] if labels.column else LABELS
        found = [name for name in places_ if name in table.column_names]
        if not found:
            return np.full(len(table), UNLABELLED), 0
        known = table[found[0]]
    words = filled(known)
    number, there = places(words, names), ~np.asarray(pc.is_null(words))
    inside = number >= 0
    if there.any() and not inside.any():
        raise BadInput(f"no label is a class of the model: {', '.join(names[:5])}")
    none = np.asarray(pc.fill_null(pc.equal(words, NONE_LABEL), False))
    return (
        np.where(inside, number, np.where(there, NONE, UNLABELLED)),
        int((there & ~inside & ~none).sum()),
    )


def beside(table: pa.Table, labels: Labels) -> Any:
    """The labels of a file of their own, put to the rows by their ids."""
    assert labels.file is not None
    column = labels.column or "label"
    said = of_file(labels.file, [labels.id, column])
    for name in (labels.id, column):
        if name not in said.column_names:
            raise BadInput(f"{labels.file}: there is no column {name!r}; it has an id and a label")
    key = next((n for n in (kept(labels.id), labels.id) if n in table.column_names), None)
    if key is None:
        raise BadInput(
            f"the log has no column {labels.id!r} to find its labels by; "
            f"`ova predict --keep {labels.id}` writes it"
        )
    ids = said[labels.id].combine_chunks()
    if len(pc.unique(ids)) < len(ids):
        twice = next(v["values"] for v in pc.value_counts(ids).to_pylist() if v["counts"] > 1)
        raise BadInput(f"{labels.file}: the id {twice!r} comes twice; give each id one label")
    return pc.take(said[column], pc.index_in(table[key], value_set=ids))


def places(names: Any, classes: Sequence[str]) -> Counts:
    """The number of each class, -1 for what is none; CSV keeps some names from being formulas."""
    known = [*classes, *(str(inert(name)) for name in classes)]
    found = pc.index_in(names, value_set=pa.array(known))
    place = np.asarray(pc.fill_null(found, -1).to_numpy()).astype(np.int64)
    return np.where(place < 0, -1, place % len(classes))


def filled(words: Any) -> Any:
    """Words, with nothing in the place of empty ones."""
    return pc.if_else(pc.equal(words, ""), None, words)


def rounded(x: Floats) -> Floats:
    """Numbers at the digits that CSV keeps, so that what is equal there is equal everywhere.

    >>> rounded(np.array([0.12345678, 0.0, -98765432.1, 0.123457]))
    array([ 1.23457e-01,  0.00000e+00, -9.87654e+07,  1.23457e-01])
    """
    size = np.floor(np.log10(np.abs(x), out=np.zeros(len(x)), where=x != 0)).astype(int)
    digits = DIGITS - 1 - size
    up, down = 10.0 ** np.maximum(digits, 0), 10.0 ** np.maximum(-digits, 0)
    found: Floats = np.rint(x / down * up) / up * down
    return found


def of_file(path: Path, wanted: Sequence[str]) -> pa.Table:
    """Of a file the wanted columns that it has: the score as numbers, all others as text."""
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    read = pick(READERS, path.suffix.lower(), "format of a log, by its ending,")
    with reading(path, f"a whole {path.suffix} file"):
        return as_text(read(path, wanted))


def as_text(table: pa.Table) -> pa.Table:
    """The score as numbers, all other columns as text."""
    for place, name in enumerate(table.column_names):
        column = table[name].cast(pa.string()) if name != SCORE else table[name]
        if name == SCORE:
            text = pa.types.is_string(column.type)
            column = (filled(column) if text else column).cast(pa.float64())
        table = table.set_column(place, name, column)
    return table


def of_csv(path: Path, wanted: Sequence[str]) -> pa.Table:
    """Of a CSV file with a header."""
    from pyarrow import csv

    data = whole_lines(path)
    with csv.open_csv(io.BytesIO(data.partition(b"\n")[0] + b"\n")) as file:
        names = [name for name in file.schema.names if name in wanted]
    options = csv.ConvertOptions(
        include_columns=names, column_types=dict.fromkeys(names, pa.string())
    )
    parse = csv.ParseOptions(newlines_in_values=True)
    return csv.read_csv(io.BytesIO(data), convert_options=options, parse_options=parse)


def of_json_lines(path: Path, wanted: Sequence[str]) -> pa.Table:
    """Of JSON lines; those of a server say of each row which model and threshold decided."""
    data = whole_lines(path)
    if not of_server(data):
        return of_lines(path, data, wanted)
    return named(of_lines(path, data, [*dict.fromkeys([*wanted, *SERVED])]))


def of_server(data: bytes) -> bool:
    """Whether `ova serve` wrote these lines: it begins each with the same columns."""
    try:
        first = decoded(data.partition(b"\n")[0].decode())
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and (*first,)[: len(COLUMNS)] == COLUMNS


def of_lines(path: Path, data: bytes, wanted: Sequence[str]) -> pa.Table:
    """Of lines of JSON; where the columns are of several kinds, line by line."""
    from pyarrow import json

    numbers = (SCORE, "threshold")
    schema = pa.schema([(n, pa.float64() if n in numbers else pa.string()) for n in wanted])
    how = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        table = json.read_json(io.BytesIO(data), parse_options=how)
    except pa.ArrowInvalid:
        table = one_by_one(path, data, wanted)
    there = [n for n in table.column_names if table[n].null_count < len(table)]
    # Which names are there at all: a column of nothing but null is as good as none, but for these.
    return table.select([n for n in table.column_names if n in there or n in (SCORE, ANSWER)])


def named(table: pa.Table) -> pa.Table:
    """What only a server says, under names of its own too."""
    for name in [name for name in SERVED if name in table.column_names]:
        table = table.append_column(SERVED[name], table[name])
    return table


def one_by_one(path: Path, data: bytes, wanted: Sequence[str]) -> pa.Table:
    """The same by Python, which takes numbers for names and says which line is damaged."""
    columns: dict[str, list[Any]] = {name: [] for name in wanted}
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            row = checked(parsed(line, where), (), where)
            for name, cells in columns.items():
                value = row.get(name)
                if name == SCORE and not isinstance(value, int | float | None):
                    raise BadInput(f"{where}: its score is no number")
                cells.append(value if value is None or name == SCORE else str(value))
    kinds = {name: pa.float64() if name == SCORE else pa.string() for name in wanted}
    return pa.table({name: pa.array(cells, kinds[name]) for name, cells in columns.items()})


def of_parquet(path: Path, wanted: Sequence[str]) -> pa.Table:
    """Of a Parquet file."""
    from pyarrow import parquet

    names = parquet.read_schema(path).names
    return parquet.read_table(path, columns=[name for name in names if name in wanted])


def whole_lines(path: Path) -> bytes:
    """The file up to its last end of line: what follows is being written, or was cut off."""
    data = path.read_bytes()
    return data[: data.rfind(b"\n") + 1] or data


READERS: Mapping[str, Callable[[Path, Sequence[str]], pa.Table]] = {
    ".csv": of_csv,
    ".jsonl": of_json_lines,
    ".parquet": of_parquet,
}
