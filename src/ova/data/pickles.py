"""Pickled arrays, read by an unpickler that can build arrays, lists, strings and numbers only."""

import io
import pickle
from collections.abc import Callable, Mapping
from re import fullmatch
from typing import Any

import numpy as np

from ova.files import reading

DEEPEST = 2  # containers within containers: a dict of lists


class _Dtype:
    """Stands in for numpy.dtype: a plain number type or an error."""

    def __init__(self, code: Any, *_: Any) -> None:
        code = code.decode("latin1") if isinstance(code, bytes) else code
        if not isinstance(code, str) or not fullmatch(r"[biuf][1248]", code):
            raise pickle.UnpicklingError(f"an array of type {code!r} is not one of numbers")
        self.code, self.order = code, "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = state[1].decode("latin1") if isinstance(state[1], bytes) else state[1]
        self.order = order if order in {"<", ">"} else "="

    @property
    def plain(self) -> np.dtype:
        return np.dtype(self.order + self.code)


class _Array:
    """Stands in for numpy.ndarray while its state arrives; numpy's own setters never see it."""

    def __init__(self, *_: Any) -> None:
        self.value = np.zeros(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, data = state
        self.value = _build(data, dtype, shape, "F" if fortran else "C").value


def _build(data: Any, dtype: _Dtype, shape: tuple[int, ...], order: Any = "C") -> _Array:
    array = _Array()
    raw = data.encode("latin1") if isinstance(data, str) else data
    array.value = np.frombuffer(raw, dtype.plain).reshape(shape, order="F" if order == "F" else "C")
    return array


def _scalar(dtype: _Dtype, data: Any) -> Any:
    return _build(data, dtype, ()).value.item()


def _latin1(text: str, codec: str = "latin1") -> bytes:
    if codec not in {"latin1", "latin-1"}:
        raise pickle.UnpicklingError(f"bytes in the codec {codec!r}")
    return text.encode("latin1")


_NUMPY: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("multiarray", "_reconstruct"): lambda *_: _Array(),
    ("multiarray", "scalar"): _scalar,
    ("numeric", "_frombuffer"): _build,
}
_ALLOWED: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Array,
    ("_codecs", "encode"): _latin1,
    **{(f"numpy.{core}.{m}", n): f for core in ("core", "_core") for (m, n), f in _NUMPY.items()},
}


class _Restricted(pickle._Unpickler):
    """Knows the few names that an array needs, each replaced by a stand-in of ours.

    The unpickler in Python, because the one in C makes a list as long as any number in the file.
    """

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which data never needs")
        return _ALLOWED[module, name]


def _plain(value: Any, seen: dict[tuple[int, int], Any], depth: int = 0) -> Any:
    """The same value with strings for bytes keys and arrays for their stand-ins.

    What is shared stays shared in `seen`: a few bytes can hold one list very many times.
    """
    if isinstance(value, _Array):
        return value.value
    if not isinstance(value, dict | list | tuple):
        return value.decode("latin1") if isinstance(value, bytes) else value
    if depth == DEEPEST:
        raise pickle.UnpicklingError("it is nested deeper than data is")
    place = id(value), depth
    if place not in seen:
        if isinstance(value, dict):
            made: Any = {
                _plain(k, seen, DEEPEST): _plain(v, seen, depth + 1) for k, v in value.items()
            }
        else:
            made = type(value)(_plain(v, seen, depth + 1) for v in value)
        seen[place] = made
    return seen[place]


def read_pickle(name: str, data: bytes) -> Any:
    """What a pickle of plain data holds; anything else in it is an error, never a call.

    >>> read_pickle("example", pickle.dumps({"labels": [3, 8], "data": np.zeros((2, 2), np.uint8)}))
    {'labels': [3, 8], 'data': array([[0, 0],
           [0, 0]], dtype=uint8)}
    """
    with reading(name, "a pickle of plain arrays and lists"):
        # Python 2 wrote the official files; their strings are bytes.
        return _plain(_Restricted(io.BytesIO(data), encoding="bytes").load(), {})
