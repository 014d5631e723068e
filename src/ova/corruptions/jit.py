"""Loops compiled by numba, callable from several threads at once."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function of arrays and numbers on its first call and keep the code on disk.

    The interpreter's lock is released inside, so plain threads share the work. That is safe in
    forked processes and under other threads, where the compiler's own thread pools are not.
    """
    try:
        return cast(F, njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # no folder of this machine may keep the code: compile in every process
        return cast(F, njit(nogil=True, error_model="numpy")(function))
