"""Calibrators of segments, applied to files, which tell segments by their text."""

from __future__ import annotations

from dataclasses import replace

from calibrant.errors import InputError
from calibrant.fitted import Fitted
from calibrant.maps import Segmented

__all__ = ["check_segment", "text_keys"]


def check_segment(fitted: Fitted, segment: str | None) -> None:
    """A calibrator of segments needs their column, and no other can use one."""
    segmented = isinstance(fitted.map, Segmented)
    if segmented and segment is None:
        raise InputError("the calibrator has a map for each segment: name the column of segments.")
    if segment is not None and not segmented:
        raise InputError(
            f"the calibrator has one map for all rows, but a column of segments came: {segment!r}. "
            "Leave it out."
        )


def text_keys(fitted_map: Segmented) -> Segmented:
    """The same map with its keys as text, as files have them.

    >>> from calibrant.maps import Identity
    >>> text_keys(Segmented(Identity(), (7,), (Identity(),))).keys
    ('7',)
    """
    keys = tuple(map(str, fitted_map.keys))
    if len(set(keys)) < len(keys):
        raise InputError("the calibrator has segments that files cannot tell apart, as 1 and '1'.")
    return replace(fitted_map, keys=keys)
