"""Plans as expressions of a database column: arithmetic, a few comparisons, or a lookup by join.

Every comparison has the same outcome as in NumPy. The borders of a plan are exact doubles on the
scale of the column that is compared, so the last bit of an engine's logarithm does not matter.
Engines differ only in the last digits of ln and exp, and so of the value within a piece.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.engines.frame_builder import FrameBuilder, between_ends
from calibrant.losses import LARGEST, SMALLEST
from calibrant.plan import nodes
from calibrant.plan.borders import Regions
from calibrant.plan.grids import Grid, grid_of, packed
from calibrant.plan.line_pieces import flat_value, line_columns, on_line
from calibrant.plan.map_input import PlanTarget
from calibrant.plan.nodes import Node, Number, PlanColumn, PlanPrinter

Index = NDArray[np.int64]

EXPRESSION = PlanTarget(
    "an expression of columns",
    "Apply it in memory: calibrate, or predict_proba for several classes.",
    iterates=False,
)
#: up to this many steps (FEW) or lines (VERY_FEW) are chosen by comparisons, more by a join
FEW, VERY_FEW = 16, 4
#: a row of the joined table holds up to this many pieces of a cell
WIDE = 2


class FramePrinter(PlanPrinter[nw.Expr]):
    """Writes a plan as an expression; lookups are joined to the builder's frame on the way.

    Parameters
    ----------
    builder : FrameBuilder
    score : name of the column that the plan is applied to
    known : nodes that have an expression already
    columns : expressions of the parameters that differ from row to row
    code : where many plans are written as one, the number of each row's plan; NULL for rows that
        have another kind of plan
    comparisons : how many pieces may be chosen by comparisons where FEW and VERY_FEW are less
    """

    def __init__(
        self,
        builder: FrameBuilder,
        score: str,
        known: Mapping[Node, nw.Expr] | None = None,
        columns: Mapping[PlanColumn, nw.Expr] | None = None,
        code: nw.Expr | None = None,
        comparisons: int = 0,
    ) -> None:
        self.builder, self.score, self.comparisons = builder, score, comparisons
        self.known = dict(known or {})
        self.columns, self.code = columns or {}, code

    def number(self, number: Number) -> nw.Expr:
        """A parameter: a constant, or a column."""
        if isinstance(number, PlanColumn):
            return self.columns[number]
        return self.builder.constant(number)

    def input(self, node: nodes.Input) -> nw.Expr:
        return nw.col(self.score)

    def constant(self, node: nodes.Constant) -> nw.Expr:
        return self.number(node.value)

    def variable(self, node: nodes.Variable) -> nw.Expr:
        return self.builder.keep(self.write(node.value))

    def clip(self, node: nodes.Clip) -> nw.Expr:
        x = self.write(node.x)
        if (node.low, node.high) == (0.0, 1.0):
            return x.clip(0.0, 1.0)
        return between_ends(x, self.number(node.low), self.number(node.high))

    def linear(self, node: nodes.Linear) -> nw.Expr:
        total = self.number(node.base)
        for coefficient, term in node.terms:
            total = total + self.number(coefficient) * self.write(term)
        return total

    def sigmoid(self, node: nodes.Sigmoid) -> nw.Expr:
        """1 / (1 + exp(−f)), with all digits of tiny ones; where exp is infinite it is 0.

        The divisor is a column: a division is written as a CASE that names it several times.
        """
        return 1.0 / self.builder.keep(1.0 + (0.0 - self.write(node.x)).exp())

    # ln(1 − p) and not log1p: what is lost is below 1e-16

    def logit(self, node: nodes.Logit) -> nw.Expr:
        p = self._inside(node.x)
        return self.builder.ln(p / (1.0 - p))

    def log(self, node: nodes.Log) -> nw.Expr:
        return self.builder.ln(self._inside(node.x))

    def minus_log_rest(self, node: nodes.MinusLogRest) -> nw.Expr:
        return 0.0 - self.builder.ln(1.0 - self._inside(node.x))

    def softplus(self, node: nodes.Softplus) -> nw.Expr:
        f = self.builder.keep(self.write(node.x))
        tail = (0.0 - f.abs()).exp()
        return nw.max_horizontal(f, nw.lit(0.0)) + self.builder.ln(1.0 + tail)

    def _inside(self, x: Node) -> nw.Expr:
        """The value moved to where ln x and ln(1 − x) are finite."""
        ends = (self.builder.constant(end) for end in (SMALLEST, LARGEST))
        return self.builder.keep(between_ends(self.write(x), *ends))

    def square(self, node: nodes.Square) -> nw.Expr:
        z = self.write(node.x)
        return z * z

    # --- pieces ---------------------------------------------------------------------------------

    def step_pieces(self, node: nodes.StepPieces) -> nw.Expr:
        return self._chosen(node, [{"value": own} for own in node.values], self.score, None)

    def line_pieces(self, node: nodes.LinePieces) -> nw.Expr:
        x, chooser = self.write(node.x), self.score
        if not node.places[0].by_input:
            chooser = self.builder.add(x)
            x = nw.col(chooser)
        value = self._chosen(node, line_columns(node.pieces), chooser, x)
        shares = all(own.are_shares for own in node.pieces)
        return value.clip(0.0, 1.0) if shares else value

    def _chosen(
        self,
        node: nodes.StepPieces | nodes.LinePieces,
        columns: Sequence[Mapping[str, Array]],
        chooser: str,
        x: nw.Expr | None,
    ) -> nw.Expr:
        """The value of each row's piece: by comparisons, or by a join."""
        found = [place.regions for place in node.places]
        table = _Table(self.builder, chooser, x)
        if self.code is not None and len(found) > 1:
            return table.of_each_row(found, columns, self.code)
        most = max(FEW if x is None else VERY_FEW, self.comparisons)
        if len(found[0].low) <= most:
            return table.by_comparisons(found[0], columns[0])
        return table.by_cells(found[0], columns[0])


class _Table:
    """Pieces that the column ``chooser`` chooses among. Lines are functions of ``x``, which is None
    for steps."""

    def __init__(self, builder: FrameBuilder, chooser: str, x: nw.Expr | None) -> None:
        self.builder, self.chooser, self.x = builder, chooser, x

    def on(self, piece: Mapping[str, nw.Expr]) -> nw.Expr:
        """The value of a piece."""
        return piece["value"] if self.x is None else line(self.x, piece)

    def by_comparisons(self, found: Regions, columns: Mapping[str, Array]) -> nw.Expr:
        """A balanced tree of comparisons with the borders, a formula at each leaf."""

        def leaf(i: int) -> nw.Expr:
            piece = {name: float(column[found.piece[i]]) for name, column in columns.items()}
            flat = None if self.x is None else flat_value(piece)
            if flat is not None:
                return self.builder.constant(flat)
            return self.on({name: self.builder.constant(v) for name, v in piece.items()})

        def branch(first: int, last: int) -> nw.Expr:
            if last - first == 1:
                return leaf(first)
            middle = (first + last) // 2
            below = nw.col(self.chooser) < self.builder.constant(found.low[middle])
            return nw.when(below).then(branch(first, middle)).otherwise(branch(middle, last))

        return branch(0, len(found.low))

    def by_cells(self, found: Regions, columns: Mapping[str, Array]) -> nw.Expr:
        """By a join with the cells that pieces fall into.

        If nearly all cells hold few pieces, the table has one row per cell, and comparisons choose
        among the pieces of the crowded cells. Otherwise it has a row for each piece in each cell.
        """
        builder, grid = self.builder, grid_of(found.low)
        cell, region = builder.listed(grid, found)
        pack = packed(cell, region, WIDE)
        key = builder.cell(self.chooser, grid)
        if len(pack.crowded) > builder.most_branches:
            cells, listed = self._listed(grid, found, columns)
            return self._joined(key, cells.astype(np.int32), listed)
        table: dict[str, Array] = {}
        for i, own in enumerate(pack.regions):
            table |= {f"{name}.{i}": c[found.piece[own]] for name, c in columns.items()}
            table |= {f"border.{i}": found.low[own]} if i else {}
        joined = builder.look_up(key, pack.cell.astype(np.int32), table)
        at = [self.on({n: joined[f"{n}.{i}"] for n in columns}) for i in range(len(pack.regions))]
        value = at[0]
        for i, later in enumerate(at[1:], start=1):  # borders choose among the pieces of a cell
            below = nw.col(self.chooser) < joined[f"border.{i}"]
            value = nw.when(below).then(value).otherwise(later)
        if not len(pack.crowded):
            return value
        known = joined[f"{next(iter(columns))}.0"]
        low, high, piece = found
        crowded = Regions(low[pack.crowded], high[pack.crowded], piece[pack.crowded])
        others = self.by_comparisons(crowded, columns)
        return nw.when(known.is_null()).then(others).otherwise(value)

    def of_each_row(
        self, found: Sequence[Regions], columns: Sequence[Mapping[str, Array]], code: nw.Expr
    ) -> nw.Expr:
        """The value of each row's piece, where rows have different plans: a join on one number that
        is made of the plan's code and the cell."""
        grid = grid_of(np.sort(np.concatenate([own.low for own in found])), owners=len(found))
        least, most = grid.bounds
        stride = most - least + 3  # and one beside the first and the last
        keys, parts = [], []
        for i, (own, values) in enumerate(zip(found, columns, strict=True)):
            cells, table = self._listed(grid, own, values)
            keys.append(cells + i * stride)
            parts.append(table)
        whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        key = code * stride + self.builder.cell(self.chooser, grid)
        return self._joined(key, np.concatenate(keys), whole)

    def _listed(
        self, grid: Grid, found: Regions, columns: Mapping[str, Array]
    ) -> tuple[Index, dict[str, Array]]:
        """Regions by cell, with their ends and the values of their pieces."""
        cell, region = self.builder.listed(grid, found)
        table = {"low_": found.low[region], "high_": found.high[region]}
        return cell, table | {n: c[found.piece[region]] for n, c in columns.items()}

    def _joined(self, key: nw.Expr, values: Index, table: Mapping[str, Array]) -> nw.Expr:
        # NULL must find no row: it could find several
        known = ~nw.col(self.chooser).is_null()
        joined = self.builder.look_up(nw.when(known).then(key), values, table)
        self.builder.within(self.chooser, joined.pop("low_"), joined.pop("high_"))
        return self.on(joined)


def line(s: nw.Expr, piece: Mapping[str, nw.Expr]) -> nw.Expr:
    """The value at s on a line, never beyond its ends where these are known."""
    value: nw.Expr = on_line(s, piece)
    if "high" not in piece:
        return value
    ends = piece["low"], piece["high"]
    return between_ends(value, nw.min_horizontal(*ends), nw.max_horizontal(*ends))
