"""What a request asks: JSON or files, checked, as rows that the model reads."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastapi import Request

from ova.data.decoding import size_of
from ova.errors import BadInput
from ova.files import decoded, not_utf8, said_by
from ova.modelfolder.asking import wanted
from ova.modelfolder.folder import Model
from ova.modelfolder.server.limits import Limits
from ova.modelfolder.server.refused import Refused
from ova.userdata.images import Sent
from ova.userdata.rows import FILE, Frame, chunks

JSON, FORM = "application/json", "multipart/form-data"
ENDINGS = (".csv", ".tsv", ".jsonl", ".txt")  # of files that are read; packed ones could be bombs
LONGEST_NAME = 200  # letters of a file's name that are kept
SMALL = 1 << 16  # bytes of JSON that are read without handing them to another thread


@dataclass(frozen=True)
class Asked:
    """Rows, and how they are to be answered."""

    frame: Frame
    threshold: float | None = None
    explain: bool = False
    classes: int = 0  # of the largest probabilities, to be named with them


def named(model: Model) -> str:
    """What the inputs of a request are called: in JSON, or as files of a form."""
    if model.preparation.column == FILE:
        return "images"
    return "texts" if model.preparation.column else "rows"


def nothing(model: Model) -> Asked:
    """A row that cannot be used: it takes the way of all rows, and is neither answered nor logged."""
    empty = Sent("", b"") if named(model) == "images" else None
    return Asked(Frame({column: [empty] for column in wanted(model)}))


async def read(request: Request, model: Model, limits: Limits) -> Frame:
    """The rows of a request, in whichever way they were sent."""
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    images = named(model) == "images"
    if sent == FORM:
        return await of_form(request, model, limits)
    if sent == JSON and not images:
        body = await request.body()
        if len(body) <= SMALL:
            return of_json(body, model, limits)
        return await asyncio.to_thread(of_json, body, model, limits)
    form = "files called 'images'" if images else "one file called 'file'"
    also = "" if images else f'{JSON} with {{"{named(model)}": [...]}}, or '
    raise Refused(415, f"send {also}{FORM} with {form}, not {sent or 'a body of no type'}")


def of_json(body: bytes, model: Model, limits: Limits) -> Frame:
    """The rows in a body of JSON."""
    try:
        content = decoded(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON ({said_by(error)})") from None
    name = named(model)
    given = content.get(name) if isinstance(content, dict) and len(content) == 1 else None
    if not isinstance(given, list):
        raise Refused(
            422, f'the body is an object with a list and nothing else: {{"{name}": [...]}}'
        )
    check_count(len(given), limits)
    if name == "texts":
        for number, text in enumerate(given, 1):
            check_cell(text, f"text {number}", limits)
            if not isinstance(text, str):
                raise Refused(422, f"text {number} is not a string")
        return Frame({model.preparation.column: given})
    columns = wanted(model)
    for number, row in enumerate(given, 1):
        check_row(row, columns, f"row {number}")
        for column, cell in row.items():
            check_cell(cell, f"row {number}, column {column!r},", limits)
    return Frame({column: [row[column] for row in given] for column in columns})


def check_count(count: int, limits: Limits) -> None:
    """Refuse no rows, and too many."""
    if not count:
        raise Refused(422, "there are no inputs in the request; send at least one")
    if count > limits.rows:
        raise Refused(413, f"{count} inputs in one request; up to {limits.rows} are taken")


def check_row(row: Any, columns: Sequence[str], where: str) -> None:
    """Refuse a row that has not exactly the columns that the model looks at."""
    have = ", ".join(map(repr, columns))
    if not isinstance(row, Mapping):
        raise Refused(422, f"{where} is not an object with the columns {have}")
    if missing := [name for name in columns if name not in row]:
        raise Refused(422, f"{where} has no column {missing[0]!r} (null is a gap); wanted {have}")
    if len(row) > len(columns):
        more = next(name for name in row if name not in columns)
        raise Refused(422, f"{where} has a column {printed(more)!r}, which the model does not know")


def check_cell(cell: Any, where: str, limits: Limits) -> None:
    """Refuse what no cell can be, and what is too long."""
    if isinstance(cell, list | dict):
        raise Refused(422, f"{where} is a list or an object; wanted a single value")
    if isinstance(cell, str):
        if len(cell) > limits.letters:
            told = f"{where} has {len(cell)} characters; up to {limits.letters} are taken"
            raise Refused(413, told)
        if not_utf8(cell):
            raise Refused(422, f"{where} is not UTF-8: it has half of a surrogate pair")


def printed(text: str) -> str:
    """A stranger's text, short and writable."""
    return text.encode("utf-8", "replace").decode()[:LONGEST_NAME]


async def of_form(request: Request, model: Model, limits: Limits) -> Frame:
    """The rows in the files of a form."""
    name = "images" if named(model) == "images" else "file"
    async with request.form(max_files=limits.rows, max_fields=limits.rows) as form:
        parts = form.multi_items()
        for key, part in parts:
            if key != name or isinstance(part, str):
                raise Refused(422, f"{printed(key)!r} is no file called {name!r}; send only those")
        files = [
            Sent(printed(part.filename or ""), await part.read())
            for _, part in parts
            if not isinstance(part, str)
        ]
    check_count(len(files), limits)
    if name == "images":
        await asyncio.to_thread(check_pixels, files, limits)
        return Frame({FILE: files})
    if len(files) > 1:
        raise Refused(422, f"{len(files)} files in one request; send one")
    return await asyncio.to_thread(of_file, files[0], model, limits)


def check_pixels(files: Sequence[Sent], limits: Limits) -> None:
    """Refuse images that would unpack to too much, before any is unpacked."""
    pixels = 0
    for file in files:
        try:
            width, height = size_of(file.data)
        except BadInput:
            continue  # the model says of this one what is wrong
        pixels += width * height
    if pixels > limits.pixels:
        told = f"{pixels} pixels in the images of one request; up to {limits.pixels} are taken"
        raise Refused(413, told)


def of_file(file: Sent, model: Model, limits: Limits) -> Frame:
    """The rows of a file of text, of which only the columns are kept that the model looks at."""
    ending = Path(file.name).suffix.lower()
    if ending not in ENDINGS:
        raise Refused(415, f"{file.name!r} does not end with one of {', '.join(ENDINGS)}")
    columns, parts, count = wanted(model), list[Frame](), 0
    with TemporaryDirectory() as place:
        path = Path(place) / f"sent{ending}"
        path.write_bytes(file.data)
        try:
            for part in chunks(path, model.preparation.column or "text"):
                check_count(count := count + len(part), limits)
                parts.append(Frame({c: part.column(c, path) for c in columns}, part.bad))
        except Refused:
            raise
        except BadInput as error:
            raise Refused(422, str(error).replace(str(path), repr(file.name))) from None
    check_count(count, limits)
    whole = joined(parts)
    for column, cells in whole.columns.items():
        for number, cell in enumerate(cells, 1):
            if number - 1 not in whole.bad:
                check_cell(cell, f"row {number}, column {column!r},", limits)
    return whole


def joined(frames: Sequence[Frame]) -> Frame:
    """Rows with the same columns, one after the other."""
    if len(frames) == 1:
        return frames[0]
    columns = {
        name: [cell for f in frames for cell in f.columns[name]] for name in frames[0].columns
    }
    bad, first = dict[int, str](), 0
    for frame in frames:
        bad |= {first + row: why for row, why in frame.bad.items()}
        first += len(frame)
    return Frame(columns, bad)
