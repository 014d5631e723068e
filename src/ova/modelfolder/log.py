"""The log that `ova monitor` reads: what `ova predict` wrote, or a server, with labels for some rows."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ova.errors import BadInput, pick
from ova.files import checked, parsed, reading
from ova.modelfolder.answer import kept
from ova.modelfolder.write import inert
from ova.posthoc.certificates import Counts, Floats
from ova.predictions import NONE, NONE_LABEL

UNLABELLED = -2  # the target of a row whose label is not known, or not yet
DIGITS = 6  # of a score, as CSV has them: scores of all formats are compared at these
SCORE, GUESS, ANSWER, TIME = "score", "best_guess", "label", "time"
LABELS = (kept("label"), "truth", "target")  # where the log has its labels, unless it is said


@dataclass(frozen=True, eq=False)
class Log:
    """The rows that have a score, in order; `classes` and labels by number."""

    score: Floats
    guess: Counts | None  # the class of each row, whether it is answered or refused
    answer: Counts  # the class that was answered, NONE where none was
    target: Counts  # NONE is none of the classes, UNLABELLED what is not known
    when: Sequence[str | None]  # the time of each row, where the log says it
    skipped: int = 0  # rows that could not be used when they came
    strange: int = 0  # labels that no class has

    def __len__(self) -> int:
        return len(self.score)


@dataclass(frozen=True)
class Labels:
    """Where the labels are: in a column of the log, or in a file of ids and labels."""

    column: str = ""
    file: Path | None = None
    id: str = "id"


def read_log(paths: Sequence[Path], classes: Sequence[str], labels: Labels) -> Log:
    """All rows of the files, one file after another."""
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
    if SCORE not in table.column_names or ANSWER not in table.column_names:
        raise BadInput(
            f"{paths[0]} is no log of answers: it has no columns `score` and `label`; "
            "`ova predict --out` writes them"
        )
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
    when = table[TIME].to_pylist() if TIME in table.column_names else [None] * len(score)
    return Log(
        score=rounded(score[used]),
        guess=guess,
        answer=answer[used],
        target=target[used],
        when=[when[row] for row in np.flatnonzero(used)] if not used.all() else when,
        skipped=int((~used).sum()),
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
        table = read(path, wanted)
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
    """Of JSON lines; where the columns are of several kinds, line by line."""
    from pyarrow import json

    data = whole_lines(path)
    schema = pa.schema([(n, pa.float64() if n == SCORE else pa.string()) for n in wanted])
    how = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        table = json.read_json(io.BytesIO(data), parse_options=how)
    except pa.ArrowInvalid:
        table = one_by_one(path, data, wanted)
    there = [n for n in table.column_names if table[n].null_count < len(table)]
    # Which names are there at all: a column of nothing but null is as good as none, but for these.
    return table.select([n for n in table.column_names if n in there or n in (SCORE, ANSWER)])


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
