"""What several printers share: lookup tables of cells, plans of many segments as one, steps from
column to column of segments."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.score_table import Cells
from calibrant.data.segments import KeyPath, SegmentKey, finest_segment
from calibrant.rules.plan.nodes import (
    LARGEST_DOUBLE,
    Function,
    Input,
    Node,
    PieceChoice,
    PlanColumn,
    Variable,
    borders,
    field_names,
    fields_of_node,
    regions_between,
    use_counts,
)

#: cells of a lookup table: the fewest, the most, and how many for each piece
FEWEST, MOST, ROOM = 2**12, 2**18, 4
#: the fewest cells for each of many maps
LEAST = 16
#: differences of scores beyond ± this may overflow
FAR = 1e280
#: so many borders may lie in crowded cells, which hold more than one
SOME = 32


@dataclass(frozen=True)
class Grid:
    """Cells of scores from ``first`` to ``last``: floor(K · t^(1/2^roots)), t from 0 to 1.

    Every operation is one that IEEE 754 fixes to the last bit, so all engines find the same cell.
    With ``cells`` the rule is that of `Cells`, applied to score − ``first``.
    """

    count: int
    first: float = 0.0
    last: float = 1.0
    roots: int = 0
    cells: Cells | None = None

    @property
    def factor(self) -> float:
        """The number that scales scores to cells, 1 / (last − first)."""
        return 1.0 / (self.last - self.first)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the largest cell."""
        ends = self(np.array([-LARGEST_DOUBLE, LARGEST_DOUBLE]))
        return int(ends[0]), int(ends[1])

    def __call__(self, scores: Array) -> Index:
        with np.errstate(over="ignore"):
            if self.cells is not None:
                return self.cells(scores - self.first)
            t = (np.clip(scores, self.first, self.last) - self.first) * self.factor
        for _ in range(self.roots):
            t = np.sqrt(t)
        return np.floor(t * float(self.count)).astype(np.int64)


def grid_of(low: Array, owners: int = 1, lean: bool = False) -> Grid:
    """A grid for a lookup among regions with these lower ends, so fine that few cells hold several.

    Rules are tried from the cheapest on, until only a few borders lie in cells that hold more than
    one. With several ``owners`` the ends are those of as many maps. A ``lean`` grid has about as
    many cells as there are regions, for tables that are written out as text.

    >>> grid_of(np.linspace(0, 1, 100)).roots
    0
    >>> crowded = np.append(0.3 + 1e-9 * np.arange(99), 1.0)
    >>> len(set(grid_of(crowded)(crowded).tolist())) > 90
    True
    """
    inner = low[low > -LARGEST_DOUBLE]
    inner = inner if len(inner) else low
    most = max(MOST // owners, LEAST)
    room, fewest = (1, LEAST) if lean else (ROOM, FEWEST)
    count = min(
        _power_of_two_above(max(room * len(inner) / owners, fewest / owners, 2.0)),
        _power_of_two_above(most),
    )
    most = count if lean else most
    best, least = Grid(count), np.inf
    if lean and np.abs(inner).max() > FAR:
        return best
    while True:
        for grid in _possible_grids(inner, count):
            _, held = np.unique(grid(inner), return_counts=True)
            crowded = float((held * (held > owners)).sum())
            if crowded < 0.7 * least:  # a dearer rule must be worth it
                best, least = grid, crowded
            if least <= SOME:
                return best
        count *= 4
        if count > most:
            return best


def _possible_grids(inner: Array, count: int) -> list[Grid]:
    """The rules for cells that can be used for these ends, the cheapest first."""
    first, last = float(inner[0]), float(inner[-1])
    grids = []
    if first >= 0.0 and last <= 1.0:
        grids = [Grid(count, roots=roots) for roots in (0, 1, 2)]
        grids.append(Grid(count, cells=Cells(count)))
    elif 1e-300 < last / 2 - first / 2 < 1e300:
        grids = [Grid(count, first, last)]
    lower, centre, upper = np.quantile(inner, [0.25, 0.5, 0.75], method="lower")
    half = float(upper / 2 - lower / 2) or max(abs(float(centre)) / 2, 1.0)
    # a power of two is read without loss, however an engine reads decimals
    spread = float(np.ldexp(1.0, int(np.clip(np.frexp(half)[1], -1000, 1000))))
    return [*grids, Grid(count, float(centre), cells=Cells(count, 0.0, spread))]


def _power_of_two_above(count: float) -> int:
    """The smallest power of two that is at least a count."""
    return 1 << int(np.ceil(np.log2(count)))


def regions_by_cell(grid: Grid, low: Array, high: Array, beside: int = 0) -> tuple[Index, Index]:
    """The cells that regions touch, and the indices of the regions: a region comes once for each of
    its cells.

    With ``beside`` also for as many cells before and after those.

    >>> cell, region = regions_by_cell(Grid(2), np.array([0.0, 0.6]), np.array([0.59, 1.0]))
    >>> cell.tolist(), region.tolist()
    ([0, 1, 1, 2], [0, 0, 1, 1])
    """
    first = grid(low) - beside
    times = grid(high) + beside - first + 1
    region = np.repeat(np.arange(len(low)), times)
    before = np.cumsum(times) - times
    return np.arange(len(region)) - before[region] + first[region], region


class Packed(NamedTuple):
    """Regions in one row per cell: the cells, the regions of each, and those in crowded cells."""

    cell: Index
    regions: list[Index]
    crowded: Index


def one_row_per_cell(cell: Index, region: Index, wide: int) -> Packed:
    """What `regions_by_cell` gives, with one row per cell: its first region, its second, and so on.

    A cell with fewer than ``wide`` regions repeats its last; cells with more are left out.

    >>> found = one_row_per_cell(np.array([0, 1, 1]), np.array([0, 0, 1]), 2)
    >>> found.cell.tolist(), [column.tolist() for column in found.regions]
    ([0, 1], [[0, 0], [0, 1]])
    """
    order = np.argsort(cell, kind="stable")
    cell, region = cell[order], region[order]
    cells, at, held = np.unique(cell, return_index=True, return_counts=True)
    fits = held <= wide
    wide = int(held[fits].max()) if fits.any() else 1
    columns = [region[at[fits] + np.minimum(i, held[fits] - 1)] for i in range(wide)]
    return Packed(cells[fits], columns, np.unique(region[~np.repeat(fits, held)]))


# --- Plans of the same form as one plan, in which each row has its own parameters -----------------
# So a target needs no more formulas and joins for thousands of segments than for one.


class StackedPlans(NamedTuple):
    """Several plans written as one: their indices among the plans given, and the plan."""

    members: list[int]
    node: Node


def stacked_plans(plans: Sequence[Node], shared: Sequence[Variable] = ()) -> list[StackedPlans]:
    """Plans, stacked with those of the same form; ``shared`` variables have one value in all of
    them.

    >>> from calibrant.rules.plan.nodes import Linear
    >>> s = Input()
    >>> [found] = stacked_plans([Linear(0.5, ((2.0, s),)), Linear(0.7, ((2.0, s),))])
    >>> found.node.base.values.tolist(), found.node.terms[0][0]
    ([0.5, 0.7], 2.0)
    """
    groups: dict[Hashable, list[int]] = {}
    for i, plan in enumerate(plans):
        groups.setdefault(_form_of_plan(plan, shared), []).append(i)
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
        fields = (field for own in use_counts([node]) for field in fields_of_node(own))
        for parameter in dict.fromkeys(own for own in fields if isinstance(own, PlanColumn)):
            names[parameter] = f"parameter_{len(names) + 1}"
            filled = np.full(count, parameter.values[0])
            filled[members] = parameter.values
            table[names[parameter]] = filled
    return table, names


def _form_of_plan(value: Any, shared: Sequence[Variable]) -> Any:
    """What two plans must have in common to be stacked."""
    if isinstance(value, PieceChoice):
        return value.stretches is None
    if isinstance(value, Node) and value not in shared:
        kind = type(value)
        return (kind, *[_form_of_plan(getattr(value, name), shared) for name in field_names(kind)])
    if isinstance(value, tuple):
        return tuple(_form_of_plan(item, shared) for item in value)
    return value if isinstance(value, Node) else type(value)


class _Stacking:
    """Makes one plan of several of the same form; a node that is shared in a plan stays so."""

    def __init__(self, shared: Sequence[Variable]) -> None:
        self.shared = shared
        self.known: dict[tuple[Node, ...], Node] = {}

    def node(self, nodes: Sequence[Node]) -> Node:
        """The node that stands for several of the same form."""
        first, key = nodes[0], tuple(nodes)
        if len(nodes) == 1 or isinstance(first, Input) or first in self.shared:
            return first
        if key not in self.known:
            names = field_names(type(first))
            parts = {name: self.value([getattr(n, name) for n in nodes]) for name in names}
            self.known[key] = type(first)(**parts)
        return self.known[key]

    def value(self, values: Sequence[Any]) -> Any:
        """The field that stands for the same field of several nodes."""
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
    for node in use_counts(plans):
        for place in getattr(node, "places", ()):
            known = place.stretches
            if place.function is not None and known is not None and len(known.first) == 1:
                groups.setdefault((place.function, int(known.sign[0])), []).append(place)
    for (function, sign), places in groups.items():
        ranks = borders(np.concatenate([place.knots for place in places]), function, sign < 0)
        ends = np.cumsum([len(place.knots) for place in places])[:-1]
        for place, own in zip(places, np.split(ranks, ends), strict=True):
            place.__dict__["regions"] = regions_between(own, sign < 0)


# --- Segments of several columns as numbers: a row is followed from column to column --------------
# For targets that look up one value at a time. A segment is a number, and a row that is in it is in
# a part of it by the value in the next column.


class ColumnStep(NamedTuple):
    """A step to the next column: which segment each of its values leads to.

    Parameters
    ----------
    values : the values that are known in the column; their numbers are their places here
    pairs : numbers of segments of the columns before, times ``len(values)``, plus that of a value
    numbers : the number of the segment that each of the ``pairs`` means
    places : which of the keys that segment has: its own, or that of a coarser segment; the number
        of keys where it has none
    """

    values: list[str | int]
    pairs: list[int]
    numbers: list[int]
    places: list[int]


def column_steps(keys: Sequence[KeyPath]) -> list[ColumnStep]:
    """A step for each column that keys have values in; before the first all rows are in segment 0.

    >>> for step in column_steps([("fr",), ("fr", "card"), ("de", "card")]):
    ...     print(*step)
    ['fr', 'de'] [0, 1] [0, 1] [0, 3]
    ['card'] [0, 1] [0, 1] [1, 2]
    """
    places: dict[SegmentKey, int] = {path: i for i, path in enumerate(keys)}
    before: dict[KeyPath, int] = {(): 0}
    steps = []
    for column in range(max(map(len, keys), default=0)):
        long = [path[: column + 1] for path in keys if len(path) > column]
        values = list(dict.fromkeys(path[-1] for path in long))
        at = {value: i for i, value in enumerate(values)}
        here = {path: i for i, path in enumerate(dict.fromkeys(long))}
        pairs = [before[path[:-1]] * len(values) + at[path[-1]] for path in here]
        found = [finest_segment(path, places) for path in here]
        steps.append(ColumnStep(values, pairs, list(here.values()), found))
        before = here
    return steps
