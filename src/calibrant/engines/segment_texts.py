"""Calibrators of segments, applied to files, which tell segments by their text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from calibrant.errors import InputError
from calibrant.maps import Map, Segmented

#: a whole number as files may spell it (007, +7, 7.0), its sign and its digits being groups; and
#: one with a power of ten (1e+05)
WHOLE = r"^[+]?(-?)0*([0-9]+)(?:\.0*)?$"
PLAIN = r"0|-?[1-9][0-9]{0,17}"  # as a fit on text spells them
POWER = r"^[+-]?[0-9]+(?:\.[0-9]*)?[eE][+]?[0-9]+$"


class KeySpelling(NamedTuple):
    """How a column must be spelled to find keys in it.

    ``whole``: all keys are whole numbers, or text that spells them plainly, so that 7, 07 and 7.0
    are the same. ``trimmed``: the keys have no blanks around them, and the column must lose its
    own. It is False where keys differ only in such blanks.
    """

    whole: bool
    trimmed: bool


class SegmentKeys(NamedTuple):
    """A map with its keys as text, and how each column of segments must be spelled."""

    map: Segmented
    columns: tuple[KeySpelling, ...]


def segment_keys(fitted_map: Map) -> SegmentKeys | None:
    """The keys of a map as files have them; None for a map without segments.

    >>> from calibrant.maps import Identity
    >>> keys = segment_keys(Segmented(Identity(), ("de  ", "fr"), (Identity(), Identity())))
    >>> keys.map.keys, keys.columns
    (('de', 'fr'), (KeySpelling(whole=False, trimmed=True),))
    >>> segment_keys(Segmented(Identity(), (7,), (Identity(),))).map.keys
    ('7',)
    """
    if not isinstance(fitted_map, Segmented):
        return None
    count, columns = fitted_map.columns, []
    made = _respelled(fitted_map, [str] * count)
    if made is None:
        raise InputError("the calibrator has segments that files cannot tell apart, as 1 and '1'.")
    for i in range(count):
        whole = all(
            isinstance(key, int) or re.fullmatch(PLAIN, key) for key in fitted_map.values(i)
        )
        spell: list[Callable[[Any], str]] = [str] * count
        spell[i] = lambda key: key.strip(" ")
        trimmed = _respelled(made, spell)
        # else two segments would become one, or one be lost
        fine = trimmed is not None and "" not in trimmed.values(i)
        made = trimmed if trimmed is not None and fine else made
        columns.append(KeySpelling(whole, fine))
    return SegmentKeys(made, tuple(columns))


def _respelled(fitted_map: Segmented, spell: Sequence[Callable[[Any], str]]) -> Segmented | None:
    """The same map with its keys spelled in another way, in each of their columns; None if two
    maps would have one key."""

    def spelled(key: Any) -> Any:
        if not isinstance(key, tuple):
            return spell[0](key)
        return tuple(own(part) for own, part in zip(spell, key, strict=False))

    keys = tuple(map(spelled, fitted_map.keys))
    common = tuple(dict.fromkeys(map(spelled, fitted_map.default_keys)))
    if len({*keys, *common}) < len(keys) + len(common):
        return None
    return replace(fitted_map, keys=keys, default_keys=common)
