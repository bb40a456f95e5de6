"""The one place that knows how kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["jit"]

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}


def jit(function: F) -> F:
    """Compile at the first call, cached on disk where a folder for that can be written to."""
    try:
        return numba.njit(function, cache=True, **OPTIONS)  # type: ignore[no-any-return]
    except RuntimeError:  # neither the package's folder nor the home is writeable
        return numba.njit(function, **OPTIONS)  # type: ignore[no-any-return]
