"""The one place that knows how kernels are compiled.

Compiling takes CPU time at the first use, so a kernel is as little code as can be: loops over
float64 and integer arrays that its caller has made. Allocating, slicing, sums and array expressions
are NumPy's work, outside: inside, each of them would be compiled again for every kernel. So would
min and max of floats, which a condition can say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
PART_OPTIONS = {**OPTIONS, "no_cpython_wrapper": True}


def jit(function: F) -> F:
    """Compile at the first call, cached on disk where a folder for that can be written to."""
    try:
        return numba.njit(function, cache=True, **OPTIONS)  # type: ignore[no-any-return]
    except RuntimeError:  # neither the package's folder nor the home is writeable
        return numba.njit(function, **OPTIONS)  # type: ignore[no-any-return]


def part(function: F) -> F:
    """A function that only kernels call: it becomes a part of them, and Python cannot call it."""
    return numba.njit(function, **PART_OPTIONS)  # type: ignore[no-any-return]
