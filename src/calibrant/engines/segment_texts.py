"""Calibrators of segments, applied to files, which tell segments by their text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, cast

from calibrant.errors import InputError
from calibrant.maps import Map, Segmented

__all__ = ["POWER", "WHOLE", "SegmentKeys", "segment_keys", "text_keys"]

#: a whole number as files may spell it (007, +7, 7.0), its sign and its digits being groups; and
#: one with a power of ten (1e+05)
WHOLE = r"^[+]?(-?)0*([0-9]+)(?:\.0*)?$"
PLAIN = r"0|-?[1-9][0-9]{0,17}"  # as a fit on text spells them
POWER = r"^[+-]?[0-9]+(?:\.[0-9]*)?[eE][+]?[0-9]+$"


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

    ``whole``: all keys are whole numbers, or text that spells them plainly, so that 7, 07 and 7.0
    are the same. ``trimmed``: the keys have no blanks around them, and a column must lose its own.
    It is False where keys differ only in such blanks.
    """

    map: Segmented
    whole: bool
    trimmed: bool


def segment_keys(fitted_map: Map) -> SegmentKeys | None:
    """The keys of a map as files have them; None for a map without segments.

    >>> from calibrant.maps import Identity
    >>> keys = segment_keys(Segmented(Identity(), ("de  ", "fr"), (Identity(), Identity())))
    >>> keys.map.keys, keys.whole, keys.trimmed
    (('de', 'fr'), False, True)
    """
    if fitted_map.segments is None:
        return None
    by_text = text_keys(cast(Segmented, fitted_map))
    whole = all(
        isinstance(key, int) or re.fullmatch(PLAIN, key) is not None for key in fitted_map.segments
    )
    trimmed = _respelled(by_text, lambda key: key.strip(" "))
    if trimmed is None or "" in trimmed.seen:  # two segments would become one, or one be lost
        return SegmentKeys(by_text, whole, False)
    return SegmentKeys(trimmed, whole, True)
