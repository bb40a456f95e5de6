"""Plans of the same form, written as one plan in which each row has its own parameters and table.

So a target needs no more formulas and joins for thousands of segments than for one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.plan.borders import borders, regions_between
from calibrant.plan.nodes import (
    Function,
    Input,
    Node,
    PieceChoice,
    PlanColumn,
    Variable,
    columns_of,
    names_of,
    uses,
)

Index = NDArray[np.int64]


class StackedPlans(NamedTuple):
    """Several plans written as one: their indices among the plans given, and the plan."""

    members: list[int]
    node: Node


def stacked(plans: Sequence[Node], shared: Sequence[Variable] = ()) -> list[StackedPlans]:
    """Plans, stacked with those of the same form; ``shared`` variables have one value in all of
    them.

    >>> from calibrant.plan.nodes import Linear
    >>> s = Input()
    >>> [found] = stacked([Linear(0.5, ((2.0, s),)), Linear(0.7, ((2.0, s),))])
    >>> found.node.base.values.tolist(), found.node.terms[0][0]
    ([0.5, 0.7], 2.0)
    """
    groups: dict[Hashable, list[int]] = {}
    for i, plan in enumerate(plans):
        groups.setdefault(_form(plan, shared), []).append(i)
    find_borders(plans)
    return [
        StackedPlans(own, _Stacking(shared).node([plans[i] for i in own]))
        for own in groups.values()
    ]


def parameter_table(
    stacks: Sequence[StackedPlans], shares: Array
) -> tuple[dict[str, Array | Index], dict[PlanColumn, str]]:
    """A table with a row for each plan, and the names of the columns that hold its parameters.

    Columns are the number of the plan's stack, its number in the stack, its share, and the
    parameters. Where a plan has no such parameter, the entry is that of another plan.
    """
    count = len(shares)
    part, code = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    table: dict[str, Array | Index] = {"part": part, "code": code, "share": shares}
    names: dict[PlanColumn, str] = {}
    for i, (members, node) in enumerate(stacks):
        part[members], code[members] = i, np.arange(len(members))
        for parameter in columns_of(node):
            names[parameter] = f"parameter_{len(names) + 1}"
            filled = np.full(count, parameter.values[0])
            filled[members] = parameter.values
            table[names[parameter]] = filled
    return table, names


def _form(value: Any, shared: Sequence[Variable]) -> Any:
    """What two plans must have in common to be stacked."""
    if isinstance(value, PieceChoice):
        return value.stretches is None
    if isinstance(value, Node) and value not in shared:
        kind = type(value)
        return (kind, *[_form(getattr(value, name), shared) for name in names_of(kind)])
    if isinstance(value, tuple):
        return tuple(_form(item, shared) for item in value)
    return value if isinstance(value, Node) else type(value)


class _Stacking:
    """One stack in the making; a node that is shared within a plan stays so."""

    def __init__(self, shared: Sequence[Variable]) -> None:
        self.shared = shared
        self.known: dict[tuple[Node, ...], Node] = {}

    def node(self, nodes: Sequence[Node]) -> Node:
        first, key = nodes[0], tuple(nodes)
        if len(nodes) == 1 or isinstance(first, Input) or first in self.shared:
            return first
        if key not in self.known:
            names = names_of(type(first))
            parts = {name: self.value([getattr(n, name) for n in nodes]) for name in names}
            self.known[key] = type(first)(**parts)
        return self.known[key]

    def value(self, values: Sequence[Any]) -> Any:
        first = values[0]
        if isinstance(first, Node):
            return self.node(values)
        if isinstance(first, float):
            return first if len(set(values)) == 1 else PlanColumn(np.array(values))
        if first and isinstance(first[0], tuple):  # terms of a sum
            both = (zip(*term, strict=True) for term in zip(*values, strict=True))
            return tuple(tuple(map(self.value, pair)) for pair in both)
        return tuple(item for own in values for item in own)  # tables


def find_borders(plans: Sequence[Node]) -> None:
    """Find the borders of many tables in one search, where tables read the same function."""
    groups: dict[tuple[Function, int], list[PieceChoice]] = {}
    for node in uses(plans):
        for place in getattr(node, "places", ()):
            known = place.stretches
            if place.function is not None and known is not None and len(known.first) == 1:
                groups.setdefault((place.function, int(known.sign[0])), []).append(place)
    for (function, sign), places in groups.items():
        ranks = borders(np.concatenate([place.knots for place in places]), function, sign < 0)
        ends = np.cumsum([len(place.knots) for place in places])[:-1]
        for place, own in zip(places, np.split(ranks, ends), strict=True):
            place.__dict__["regions"] = regions_between(own, sign < 0)
