"""Maps of many segments taken apart, so that those of the same form share columns of parameters."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.export.pieces import pieces
from calibrant.maps import Chain, Identity, Interval, Logistic, Map, Mixture, Piecewise, Segmented
from calibrant.maps.logistic import FEATURES
from calibrant.plan.borders import LARGEST_DOUBLE

__all__ = ["Leaf", "leaves", "parameters", "slots"]

Array = NDArray[np.float64]

#: what a logistic map without a clip counts as
ALL = (-LARGEST_DOUBLE, LARGEST_DOUBLE)


@dataclass(frozen=True)
class Leaf:
    """A part of one segment's map: sigmoids one after another, and then a sigmoid or pieces."""

    segment: int
    weight: float
    first: tuple[Logistic, ...]
    last: Any  # Logistic or Piecewise, the same in all leaves of a form

    @property
    def form(self) -> tuple[Any, ...]:
        """What leaves must have in common to be written as one expression."""
        if isinstance(self.last, Logistic):
            return (len(self.first), "logistic")
        return (len(self.first), self.last.input, self.last.output, *pieces(self.last))

    @property
    def sigmoids(self) -> tuple[Logistic, ...]:
        """All steps that are sigmoids."""
        return (*self.first, self.last) if isinstance(self.last, Logistic) else self.first


@functools.singledispatch
def leaves(map_: Map, leaf: Leaf) -> list[Leaf]:
    """The weighted parts of one segment's map, each like ``leaf`` but for its own end.

    >>> from calibrant.maps import Piecewise
    >>> [part.weight for part in leaves(Piecewise.constant(0.5), Leaf(0, 1.0, (), None))]
    [1.0]
    """
    raise InputError(
        f"a segment's map of kind {map_.kind!r} cannot share a table with others. Apply it in "
        "memory: calibrate."
    )


@leaves.register(Logistic)
@leaves.register(Piecewise)
def _(map_: Logistic | Piecewise, leaf: Leaf) -> list[Leaf]:
    return [Leaf(leaf.segment, leaf.weight, leaf.first, map_)]


@leaves.register
def _(map_: Identity, leaf: Leaf) -> list[Leaf]:
    return leaves(Piecewise.linear([0.0, 1.0], [0.0, 1.0]), leaf)


@leaves.register
def _(map_: Interval, leaf: Leaf) -> list[Leaf]:
    return leaves(map_.point, leaf)


@leaves.register
def _(map_: Segmented, leaf: Leaf) -> list[Leaf]:
    return leaves(map_.default, leaf)


@leaves.register
def _(map_: Mixture, leaf: Leaf) -> list[Leaf]:
    whole = map_.collapsed
    if whole is not None:
        return leaves(whole, leaf)
    parts = zip(map_.weights.tolist(), map_.members, strict=True)
    own = [(Leaf(leaf.segment, leaf.weight * w, leaf.first, None), m) for w, m in parts if w > 0.0]
    return [part for like, member in own for part in leaves(member, like)]


@leaves.register
def _(map_: Chain, leaf: Leaf) -> list[Leaf]:
    *before, last = map_.steps
    sigmoids = tuple(step for step in before if isinstance(step, Logistic))
    if len(sigmoids) < len(before):
        raise InputError(
            "a segment's map cannot share a table with others where a chain goes on after steps "
            "or lines: only sigmoids may come before its end. Apply it in memory: calibrate."
        )
    return leaves(last, Leaf(leaf.segment, leaf.weight, leaf.first + sigmoids, None))


def slots(parts: Sequence[Leaf]) -> list[list[Leaf]]:
    """Leaves of the same form together, at most one of each segment.

    >>> from calibrant.maps import Piecewise
    >>> both = [Leaf(i, 1.0, (), Piecewise.constant(0.5)) for i in (0, 1, 1)]
    >>> [[leaf.segment for leaf in slot] for slot in slots(both)]
    [[0, 1], [1]]
    """
    found: dict[tuple[Any, ...], list[Leaf]] = {}
    seen: Counter[tuple[Any, ...]] = Counter()
    for leaf in parts:
        owner = (leaf.segment, leaf.form)
        found.setdefault((leaf.form, seen[owner]), []).append(leaf)
        seen[owner] += 1
    return list(found.values())


def parameters(slot: Sequence[Leaf], place: Mapping[int, int]) -> dict[str, Array]:
    """Weights and the sigmoids' coefficients, a row for each segment at its ``place``: 0 where it
    has none. Of step i: ``i_intercept``, ``i_x`` and so on, ``i_clip_low`` and ``i_clip_high``.
    """
    rows = [place[leaf.segment] for leaf in slot]

    def column(values: list[float], missing: float = 0.0) -> Array:
        filled = np.full(len(place), missing)
        filled[rows] = values
        return filled

    found = {"weight": column([leaf.weight for leaf in slot])}
    for step, maps in enumerate(zip(*(leaf.sigmoids for leaf in slot), strict=True)):
        found[f"{step}_intercept"] = column([m.intercept for m in maps])
        terms = [dict(m.terms) for m in maps]
        for name in FEATURES:
            if any(t.get(name) for t in terms):
                found[f"{step}_{name}"] = column([t.get(name, 0.0) for t in terms])
        if any(m.clip is not None for m in maps):
            for end, side in enumerate(("clip_low", "clip_high")):
                found[f"{step}_{side}"] = column([(m.clip or ALL)[end] for m in maps], ALL[end])
    return found
