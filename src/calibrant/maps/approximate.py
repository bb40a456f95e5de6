"""Any piecewise smooth function as straight lines, to a stated tolerance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.array_types import Array, Flags
from calibrant.errors import ParameterError

#: where a piece is probed: an asymmetric set, so that no smooth error vanishes at all of them
PROBES = np.array([0.11, 0.27, 0.5, 0.69, 0.87])


def refine(
    function: Callable[[Array], Array],
    x: Array,
    left: Array,
    right: Array,
    tol: float,
    max_knots: int = 1_000_000,
    doubtful: Flags | None = None,
) -> tuple[Array, Array, Array]:
    """Knots with left and right values whose straight pieces stay within ``tol`` of the function.

    Every piece is probed at five inner points and halved until the largest error there is at most
    tol/2; the half left over covers what lies between the probes. The function must be smooth
    between the knots given; ``left`` and ``right`` are its limits there, so jumps are kept. Only
    the pieces marked in ``doubtful`` (all by default) are probed; ``max_knots`` counts new knots.

    >>> ends = np.array([0.0, 1.0])
    >>> x, _, value = refine(np.square, ends, ends, ends, 1e-4)
    >>> t = np.linspace(0, 1, 1001)
    >>> bool(np.abs(np.interp(t, x, value) - t**2).max() <= 1e-4)
    True
    """
    if not tol > 0:
        raise ParameterError(f"tol must be above 0, but {tol!r} came.")
    open_ = np.ones(len(x) - 1, dtype=bool) if doubtful is None else doubtful.copy()
    most = len(x) + max_knots
    while open_.any():
        piece = np.flatnonzero(open_)
        low, high = x[piece], x[piece + 1]
        start, rise = right[piece], left[piece + 1] - right[piece]
        inside = low[:, None] * (1.0 - PROBES) + high[:, None] * PROBES
        along = _along(inside, low[:, None], high[:, None])
        line = start[:, None] + rise[:, None] * along
        error = np.abs(function(inside.ravel()).reshape(inside.shape) - line).max(axis=1)
        middle = low / 2 + high / 2
        split = (error > tol / 2) & (middle > low) & (middle < high)
        if len(x) + split.sum() > most:
            raise ParameterError(
                f"tol={tol:g} would need more than {max_knots} knots; choose a larger tolerance."
            )
        after, new = piece[split], middle[split]
        value = function(new)
        x, left, right = (
            np.insert(old, after + 1, added)
            for old, added in ((x, new), (left, value), (right, value))
        )
        open_ = np.zeros(len(open_), dtype=bool)
        open_[after] = True
        open_ = np.insert(open_, after, True)
    return x, left, right


def _along(inside: Array, low: Array, high: Array) -> Array:
    """Where points lie between low and high, as a share: in a narrow piece rounding moves them."""
    return np.asarray((inside / 2 - low / 2) / np.maximum(high / 2 - low / 2, 5e-324))
