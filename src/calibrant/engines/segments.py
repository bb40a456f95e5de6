"""Calibrators of segments, applied to files, which tell segments by their text."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from calibrant.errors import InputError
from calibrant.fitted import Fitted
from calibrant.maps import Segmented

__all__ = ["SegmentKeys", "check_segment", "segment_keys", "text_keys"]


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


class SegmentKeys(NamedTuple):
    """A map with its keys as text, and how a column must be spelled to find them.

    ``whole``: all keys were whole numbers. ``trimmed``: they are without the blanks around them,
    which CSV files lose; not so if some differ in nothing else.
    """

    map: Segmented
    whole: bool
    trimmed: bool


def segment_keys(fitted_map: Segmented) -> SegmentKeys:
    """The keys of a map as files have them, whatever kind of file the fit has seen.

    >>> from calibrant.maps import Identity
    >>> keys = segment_keys(Segmented(Identity(), ("de  ", "fr"), (Identity(), Identity())))
    >>> keys.map.keys, keys.whole, keys.trimmed
    (('de', 'fr'), False, True)
    """
    by_text = text_keys(fitted_map)
    whole = all(isinstance(key, int) for key in fitted_map.keys)
    trimmed = tuple(key.strip(" ") for key in by_text.keys)
    if len({*trimmed, ""}) <= len(trimmed):  # some would be one, or none at all
        return SegmentKeys(by_text, whole, False)
    return SegmentKeys(replace(by_text, keys=trimmed), whole, True)
