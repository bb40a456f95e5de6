"""Calibrators of segments, applied to files, which tell segments by their text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.maps import Segmented

__all__ = ["POWER", "WHOLE", "SegmentKeys", "check_segment", "segment_keys", "text_keys"]

#: a whole number as files may spell it (007, +7, 7.0), its sign and its digits being groups; and
#: one with a power of ten (1e+05)
WHOLE = r"^[+]?(-?)0*([0-9]+)(?:\.0*)?$"
PLAIN = r"0|-?[1-9][0-9]{0,17}"  # as all are spelled that a fit on text has seen
POWER = r"^[+-]?[0-9]+(?:\.[0-9]*)?[eE][+]?[0-9]+$"


def check_segment(fitted: Fitted, segment: str | None) -> None:
    """A calibrator of segments needs their column, and no other can use one."""
    segmented = fitted.map.segments is not None
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
    made = _respelled(fitted_map, str)
    if made is None:
        raise InputError("the calibrator has segments that files cannot tell apart, as 1 and '1'.")
    return made


def _respelled(fitted_map: Segmented, spell: Callable[[Any], str]) -> Segmented | None:
    """The same map with its keys spelled in another way; None if two maps would have one key."""
    keys = tuple(map(spell, fitted_map.keys))
    common = tuple(dict.fromkeys(map(spell, fitted_map.default_keys)))
    if len({*keys, *common}) < len(keys) + len(common):
        return None
    return replace(fitted_map, keys=keys, default_keys=common)


class SegmentKeys(NamedTuple):
    """A map with its keys as text, and how a column must be spelled to find them.

    ``whole``: all keys were whole numbers, or text that spells them plainly, so that 7, 07 and 7.0
    are the same. ``trimmed``: they
    are without the blanks around them, which CSV files lose; not so if some differ in nothing else.
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
    whole = all(
        isinstance(key, int) or re.fullmatch(PLAIN, key) is not None for key in fitted_map.seen
    )
    trimmed = _respelled(by_text, lambda key: key.strip(" "))
    if trimmed is None or "" in trimmed.seen:  # some would be one, or none at all
        return SegmentKeys(by_text, whole, False)
    return SegmentKeys(trimmed, whole, True)
