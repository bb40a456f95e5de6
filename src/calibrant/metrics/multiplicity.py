"""Several tests at once: p-values corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.errors import InputError


def holm_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order they came.

    >>> holm_adjusted([0.02, 0.01, 0.5])
    (0.04, 0.03, 0.5)
    """
    if any(not 0.0 <= p <= 1.0 for p in p_values):
        raise InputError(f"p-values must lie in [0, 1], but {list(p_values)} came.")
    adjusted, largest, left = [0.0] * len(p_values), 0.0, len(p_values)
    for place in sorted(range(len(p_values)), key=p_values.__getitem__):
        largest = max(largest, min(1.0, left * p_values[place]))
        adjusted[place], left = largest, left - 1
    return tuple(adjusted)
