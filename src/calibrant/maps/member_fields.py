"""Fields of maps that hold other maps: how they are read and checked."""

from __future__ import annotations

import functools
from typing import Any

from calibrant.data.json_facts import shown
from calibrant.errors import InputError
from calibrant.maps.base import Map, VectorMap
from calibrant.maps.checks import read_by


def maps_of_one_score(members: Any, where: str) -> tuple[Map, ...]:
    """A tuple of maps that take one score each."""
    made = (members,) if isinstance(members, str) else tuple(members)
    for member in made:
        if not isinstance(member, Map) or isinstance(member, VectorMap):
            raise InputError(
                f"{where} must be a sequence of maps of one score, but {shown(member)} came."
            )
    return made


def map_tuple(where: str) -> dict[str, Any]:
    """The metadata of a field that holds a tuple of maps of one score."""
    return read_by(functools.partial(maps_of_one_score, where=where))


def one_map(where: str) -> dict[str, Any]:
    """The metadata of a field that holds a map of one score."""
    return read_by(lambda value: maps_of_one_score((value,), where)[0])
