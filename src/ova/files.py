"""The machine: atomic writes, files that are named when they are damaged, and how many cores there are."""

import hashlib
import json
import math
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from os.path import samestat
from pathlib import Path
from typing import Any, BinaryIO

from ova.errors import BadInput

Row = dict[str, Any]
LONGEST_NAME = 200  # bytes; file systems take 255
LONGEST = 300  # letters of somebody else's error that are worth repeating


@contextmanager
def write_beside(path: Path, durable: bool = True) -> Iterator[Path]:
    """A temporary neighbour of `path` to write to; it takes the place of `path` only on success.

    `durable` waits for the disk, so that even a power failure leaves the old file or the new one.
    An error of the system names `path`, not the neighbour.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with reserved(path) as part:
        try:
            yield part
            if durable:
                with part.open("rb+") as file:
                    os.fsync(file.fileno())  # a rename must not reach the disk before the bytes do
            part.replace(path)
        except OSError as error:
            if error.errno and error.filename in (None, str(part)):
                raise OSError(error.errno, error.strerror, str(path)) from error
            raise
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def reserved(path: Path) -> Iterator[Path]:
    """A file beside `path` that is ours alone: one that a killed writer left, or a new one.

    Its name is always the same, so that nothing is left over when killed work is done again. Where
    another writer has it, or files cannot be locked, the name has the number of this process.
    """
    with held(beside(path)) as ours:
        if ours:
            os.truncate(beside(path), 0)
            yield beside(path)
        else:
            yield beside(path, f".of-{os.getpid()}-{threading.get_ident()}")


def beside(path: Path, mark: str = "") -> Path:
    """The neighbour that a file is written to.

    >>> beside(Path("runs/recipe.json")).name
    '.recipe.json.part'
    """
    name = path.name
    if len(os.fsencode(name)) > LONGEST_NAME:  # it leaves no room for more
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return path.with_name(f".{name}{mark}.part")


@contextmanager
def held(path: Path, wait: bool = False) -> Iterator[bool | None]:
    """Hold a file alone, which is made if need be: True; False if somebody else does.

    None where files cannot be locked (Windows, some network drives); then there is no file. A lock
    ends with its process, however that ends.
    """
    while True:
        with path.open("ab") as file:
            ours = lock(file, wait)
            # Who had it before may have removed or renamed the file that is now locked.
            if ours and not (path.exists() and samestat(os.fstat(file.fileno()), path.stat())):
                continue
            if ours is not None:
                yield ours
                return
        break
    with suppress(OSError):  # another process may be looking at it just now
        path.unlink()
    yield None


def lock(file: BinaryIO, wait: bool) -> bool | None:
    """Whether the open file could be locked for this process alone; None if no file can be."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def write_text(path: Path, text: str, durable: bool = True) -> None:
    r"""Write text atomically.

    Bytes of file names that are no UTF-8 are lone surrogates in Python. They become escapes like
    \udce9, which in JSON say exactly that.
    """
    with write_beside(path, durable) as part:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, value: Any, indent: int | None = 2) -> None:
    """Write JSON atomically; NaN is refused because JSON has none."""
    write_text(path, json.dumps(value, indent=indent, allow_nan=False, ensure_ascii=False) + "\n")


def write_lines(path: Path, rows: Iterable[Any], durable: bool = True) -> None:
    """Write one JSON value per line, atomically."""
    lines = (json.dumps(row, allow_nan=False, ensure_ascii=False) + "\n" for row in rows)
    write_text(path, "".join(lines), durable)


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Put the file's name before a complaint that does not say it."""
    try:
        yield
    except BadInput as error:
        said = str(error)
        raise (error if str(path) in said else BadInput(f"{path}: {said}")) from None


@contextmanager
def reading(path: Path | str, what: str) -> Iterator[None]:
    """Whatever a reader raises about a damaged or hostile file, as a sentence with the file's name.

    Around calls of libraries that decode somebody's bytes: these raise nearly anything (zlib.error,
    struct.error, KeyError, RecursionError, MemoryError, panics of Rust, which are no Exceptions).
    """
    try:
        with naming(path):
            yield
    except (BadInput, ModuleNotFoundError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        named = isinstance(error, OSError) and error.filename
        if named or isinstance(error, UnicodeEncodeError):  # the machine's, not the content's
            raise
        raise BadInput(f"{path}: damaged, or not {what} ({said_by(error)})") from error


def said_by(error: BaseException) -> str:
    """What an error says, in one short line.

    >>> said_by(KeyError("target"))
    "KeyError: 'target'"
    """
    text = " ".join(str(error).split())
    kind = "" if isinstance(error, OSError | ValueError) and text else type(error).__name__
    told = f"{kind}: {text}" if kind and text else kind or text
    return told if len(told) <= LONGEST else f"{told[:LONGEST]} ..."


def read_json(path: Path) -> Any:
    """The JSON value of a file."""
    return parsed(read_text(path), f"{path}")


def read_object(path: Path) -> Row:
    """The JSON object of a file."""
    return checked(read_json(path), (), f"{path}")


def read_lines(path: Path, needed: Sequence[str] = ()) -> list[Row]:
    """The JSON objects of a file that has one per line, each with the needed keys."""
    # Not splitlines(): it also splits at characters that JSON leaves inside strings.
    lines = enumerate(read_text(path).split("\n"), 1)
    return [
        checked(parsed(line, f"{path}, line {number}"), needed, f"{path}, line {number}")
        for number, line in lines
        if line.strip()
    ]


def read_text(path: Path) -> str:
    """The text of a file in UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is damaged: {said_by(error)}") from None


def not_utf8(text: str) -> bool:
    r"""Whether some bytes of the text could not be decoded.

    >>> not_utf8("caf\udce9")
    True
    """
    return not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text)


def parsed(text: str, where: str) -> Any:
    """The JSON value of a text; one that is none is named and left as it is."""
    try:
        return decoded(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"{where} is damaged, it is not JSON ({said_by(error)}); it was left untouched. "
            "Move it away to compute it again."
        ) from None


def decoded(text: str) -> Any:
    """The JSON value of a text, or a ValueError or RecursionError.

    Stricter than Python, which takes NaN and numbers without an end; these would fail only where
    they are written again.
    """
    return _JSON.decode(text)


def _finite(text: str) -> float:
    if math.isfinite(number := float(text)):
        return number
    raise ValueError(f"{text} is no number")


def _whole(text: str) -> int:
    if len(text) <= 20:  # all of 64 bits
        return int(text)
    raise ValueError(f"a whole number of {len(text)} digits")


_JSON = json.JSONDecoder(parse_float=_finite, parse_int=_whole, parse_constant=_finite)


def checked(value: Any, needed: Sequence[str], where: str) -> Row:
    """The value, if it is a JSON object with the needed keys."""
    if not isinstance(value, dict) or any(key not in value for key in needed):
        keys = f" with {', '.join(needed)}" if needed else ""
        raise BadInput(f"{where} should be a JSON object{keys}")
    return value


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cores() -> int:
    """How many cores this process may use, at least one.

    Those it may run on, where the system says it (macOS and Windows do not), and no more than its
    container may keep busy.
    """
    known = hasattr(os, "sched_getaffinity")
    here = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    return math.ceil(min(here, container_limit()))


@cache
def container_limit(root: Path = Path("/")) -> float:
    """How many cores the control groups (cgroups) of this process allow; infinite without a limit.

    A group is limited by every group above it. A container may see its own group as the root and
    yet be told the name that the host knows, so groups that are not there are passed over.
    """
    limits = [math.inf]
    for line in system_text(root / "proc/self/cgroup").splitlines():
        _, controllers, name = line.split(":", 2)
        if not controllers:  # version 2 has one tree
            top, names = root / "sys/fs/cgroup", ["cpu.max"]
        elif "cpu" in controllers.split(","):
            top, names = root / "sys/fs/cgroup/cpu", ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        else:
            continue
        group = top / name.strip("/")
        for folder in (group, *group.parents):
            numbers = " ".join(system_text(folder / name) for name in names).split()
            if folder.is_relative_to(top) and numbers and numbers[0] not in ("max", "-1"):
                quota, period = map(int, numbers)  # microseconds of work in so many of the clock
                limits.append(quota / period)
    return min(limits)


def system_text(path: Path) -> str:
    """What the system says in one of its files; nothing where there is no such file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
