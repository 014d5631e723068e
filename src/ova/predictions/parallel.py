"""Loops compiled by numba, run over blocks of rows by all cores."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

from numba import njit

from ova.files import cores

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")

# Reordering lets sums use whole registers; NaN and infinity keep their meaning.
_FLAGS = {"reassoc", "contract", "arcp", "nsz"}


def compiled(function: F) -> F:
    """Machine code for `function`, kept on disk between runs where a place for it can be written."""
    try:
        return cast(F, njit(function, nogil=True, cache=True, fastmath=_FLAGS))
    except RuntimeError:  # nowhere to keep it: compile again in each process
        return cast(F, njit(function, nogil=True, fastmath=_FLAGS))


def threads() -> int:
    """One for each core; OMP_NUM_THREADS is obeyed because users know it."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) > 0 else cores()


def by_blocks(rows: int, block: int, work: Callable[[int, int], T]) -> list[T]:
    """`work(start, stop)` for consecutive blocks, in their order.

    The blocks depend on the number of rows only, so that sums do not change with the number of
    cores. Threads, because compiled loops release the interpreter and a fork stays harmless.
    """
    starts = range(0, rows, block)
    if len(starts) < 2 or threads() < 2:
        return [work(start, min(start + block, rows)) for start in starts]
    with ThreadPoolExecutor(threads()) as pool:
        return list(pool.map(lambda start: work(start, min(start + block, rows)), starts))
