"""Plans as expressions of a frame's column: arithmetic, a few comparisons, or a lookup by join.

Every comparison has the same outcome as in NumPy. The borders of a plan are exact doubles on the
scale of the column that is compared, so the last bit of an engine's logarithm does not matter.
Engines differ only in the last digits of values within a piece."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.data.columns import to_narwhals
from calibrant.data.lazy import LAZY, Column, left_join, with_ln_or_sqrt
from calibrant.errors import InputError, import_extra
from calibrant.export.lookup_tables import (
    Grid,
    column_steps,
    grid_of,
    one_row_per_cell,
    parameter_table,
    regions_by_cell,
    stacked_plans,
)
from calibrant.losses import LARGEST, SMALLEST
from calibrant.rules.base import Map, VectorMap
from calibrant.rules.plan import nodes
from calibrant.rules.plan.nodes import (
    BySegment,
    Node,
    Number,
    PlanColumn,
    PlanPrinter,
    PlanTarget,
    Regions,
    flat_value,
    line_columns,
    on_line,
)
from calibrant.rules.segmented import Segmented

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
    """Writes the plan of one score as an expression of a frame. Tables of pieces are joined to the
    frame.

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
        """A parameter as an expression: a constant, or a column."""
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
        return clipped_expression(x, self.number(node.low), self.number(node.high))

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
        """A value moved to where ln x and ln(1 − x) are finite."""
        ends = (self.builder.constant(end) for end in (SMALLEST, LARGEST))
        return self.builder.keep(clipped_expression(self.write(x), *ends))

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
        """The value of the piece that each row falls into: by comparisons, or by a join."""
        found = [place.regions for place in node.places]
        table = _PieceTable(self.builder, chooser, x)
        if self.code is not None and len(found) > 1:
            return table.of_each_row(found, columns, self.code)
        most = max(FEW if x is None else VERY_FEW, self.comparisons)
        if len(found[0].low) <= most:
            return table.by_comparisons(found[0], columns[0])
        return table.by_cells(found[0], columns[0])


class _PieceTable:
    """Pieces of a map, of which the column ``chooser`` chooses one for each row. They are steps, or
    lines in ``x``."""

    def __init__(self, builder: FrameBuilder, chooser: str, x: nw.Expr | None) -> None:
        self.builder, self.chooser, self.x = builder, chooser, x

    def on(self, piece: Mapping[str, nw.Expr]) -> nw.Expr:
        """The value on a piece."""
        return piece["value"] if self.x is None else line_expression(self.x, piece)

    def by_comparisons(self, found: Regions, columns: Mapping[str, Array]) -> nw.Expr:
        """The value of each row's piece, by a tree of comparisons."""

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
        """The value of each row's piece, by a join with a table of cells.

        If nearly all cells hold few pieces, the table has one row per cell, and comparisons choose
        among the pieces of the crowded cells. Otherwise it has a row for each piece in each cell.
        """
        builder, grid = self.builder, grid_of(found.low)
        cell, region = builder.listed(grid, found)
        pack = one_row_per_cell(cell, region, WIDE)
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
        """The value of each row's piece where rows have different plans, by a join on plan and
        cell."""
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
        """A table with a row for each piece in each cell: the cells, and the columns."""
        cell, region = self.builder.listed(grid, found)
        table = {"low_": found.low[region], "high_": found.high[region]}
        return cell, table | {n: c[found.piece[region]] for n, c in columns.items()}

    def _joined(self, key: nw.Expr, values: Index, table: Mapping[str, Array]) -> nw.Expr:
        # NULL must find no row: it could find several
        """The value of each row's piece, by a join with a table that may have several rows for a
        key."""
        known = ~nw.col(self.chooser).is_null()
        joined = self.builder.look_up(nw.when(known).then(key), values, table)
        self.builder.within(self.chooser, joined.pop("low_"), joined.pop("high_"))
        return self.on(joined)


def line_expression(s: nw.Expr, piece: Mapping[str, nw.Expr]) -> nw.Expr:
    """The value of a line at s, never beyond the line's ends."""
    value: nw.Expr = on_line(s, piece)
    if "high" not in piece:
        return value
    ends = piece["low"], piece["high"]
    return clipped_expression(value, nw.min_horizontal(*ends), nw.max_horizontal(*ends))


# --- Probabilities of several classes as columns of a lazy frame ----------------------------------
# They are expressions, but for many classes on Spark: there the map itself is called with blocks of
# rows, since the formulas of fifty classes are a query that Spark takes a minute to plan.


#: the most classes that are written as expressions
MOST_BY_EXPRESSIONS = 10


def class_probabilities(
    map_: VectorMap, builder: FrameBuilder, scores: Sequence[str]
) -> list[nw.Expr]:
    """The probability of each class as an expression, for complete rows of scores."""
    if map_.n_classes > MOST_BY_EXPRESSIONS and _takes_blocks(builder.frame, map_):
        return builder.change(
            map_.n_classes, lambda frame, new: _add_by_blocks(frame, map_, scores, new)
        )
    return RowFramePrinter(builder, scores).write(map_.plan(EXPRESSION))


def _takes_blocks(frame: nw.LazyFrame[Any], map_: VectorMap) -> bool:
    """Whether Spark's workers can call the map themselves. It is tried out on one row.

    They can if Spark hands Arrow columns to functions (from 4.1 on), and if their Python has what
    the map needs. That is tried out on a row.
    """
    if not is_spark(frame) or not hasattr(_spark_functions(), "arrow_udf"):
        return False
    rows: Any = frame.to_native()
    zeros = [_spark_functions().lit(0.0)] * map_.n_columns
    try:
        rows.sparkSession.range(1).select(_spark_function(map_)(*zeros)).collect()
    except Exception:  # whatever a worker lacks: expressions need no worker's Python
        return False
    return True


def _add_by_blocks(
    frame: nw.LazyFrame[Any], map_: VectorMap, scores: Sequence[str], new: Sequence[str]
) -> nw.LazyFrame[Any]:
    """The Spark frame with a column for each class, computed by the map in blocks of rows."""
    rows: Any = frame.to_native()
    together = f"{new[0]}_all"
    made = rows.withColumn(together, _spark_function(map_)(*map(_spark_functions().col, scores)))
    each = (f"`{together}`[{j}] AS `{name}`" for j, name in enumerate(new))
    opened: nw.LazyFrame[Any] = nw.from_native(made.selectExpr("*", *each).drop(together))
    return opened


def _spark_functions() -> Any:
    """The module pyspark.sql.functions."""
    return import_extra("pyspark.sql.functions", extra="spark")


def _spark_function(map_: VectorMap) -> Callable[..., Any]:
    """The map as a function of Spark columns; its result is an array."""
    pyarrow = import_extra("pyarrow", extra="spark")

    def of_blocks(*columns: Any) -> Any:
        p = map_(np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns]))
        starts = np.arange(0, p.size + 1, p.shape[1], dtype=np.int32)
        return pyarrow.ListArray.from_arrays(starts, pyarrow.array(p.ravel()))

    of_blocks.__annotations__ = {"columns": pyarrow.Array, "return": pyarrow.Array}
    return _spark_functions().arrow_udf(of_blocks, "array<double>")  # type: ignore[no-any-return]


# --- A plan for each segment, as one expression of the score and of the columns of segments -------
# The parameters of each segment's plan are joined by segment, the pieces by segment and cell. Plans
# of the same form share a column for each parameter, so thousands of segments need no more joins
# than one.


Keys = tuple[str | int, ...]

#: whole numbers that may be too long for a 64-bit integer with a sign
LONG = (nw.UInt64, nw.Int128, nw.UInt128)


# --- the columns of segments ----------------------------------------------------------------------


class SegmentColumn(NamedTuple):
    """A column of segments, as text or whole numbers.

    Parameters
    ----------
    value : its values
    kind : str or int
    spelled : gives keys as the column spells them
    """

    value: nw.Expr
    kind: type
    spelled: Callable[[Keys], Sequence[Any]]


def segment_columns(
    map_: Map, frame: nw.LazyFrame[Any], called: Mapping[str, str], names: Sequence[str]
) -> list[SegmentColumn]:
    """The columns of segments of a frame, ready to be looked up."""
    schema = frame.collect_schema()
    found = []
    for i, said in enumerate(names):
        column = called[said]
        kind = kind_of_segment(schema, column)
        check_keys(map_, i, kind, said)
        spelled: Callable[[Keys], Sequence[Any]] = tuple
        if schema[column] in LONG:
            kind, spelled = str, _as_text
        value = nw.col(column).cast(nw.String() if kind is str else nw.Int64())
        found.append(SegmentColumn(value, kind, spelled))
    return found


def _as_text(keys: Keys) -> list[str | None]:
    """Keys that are whole numbers as text; None for other keys."""
    return [str(key) if isinstance(key, int) else None for key in keys]


def kind_of_segment(schema: nw.Schema, segment: str) -> type:
    """The type of keys that a column can hold: str or int."""
    kind = schema[segment]
    if kind in (nw.String, nw.Categorical, nw.Enum):
        return str
    if kind.is_integer() or kind == nw.Boolean:
        return int
    raise InputError(
        f"segment column {segment!r} must be text or whole numbers, but its type is {kind}. Cast "
        "it to what the calibrator was fitted with."
    )


def check_keys(map_: Map, place: int, kind: type, segment: str) -> None:
    """Refuse a column of segments whose type none of the calibrator's keys has."""
    seen = map_.values(place) if isinstance(map_, Segmented) else ()
    if seen and not any(type(key) is kind for key in seen):
        are, came = ("whole numbers", "text") if kind is str else ("text", "whole numbers")
        raise InputError(
            f"the calibrator's segments are {are}, but column {segment!r} is {came}, so that no "
            "row would find its own. Cast the column."
        )


# --- the plan -------------------------------------------------------------------------------------


def by_segment(
    plan: BySegment, segments: Sequence[SegmentColumn], score: str, builder: FrameBuilder
) -> nw.Expr:
    """The probability by each row's own segment, as an expression."""
    keys: Sequence[Any] = range(len(plan.keys))
    segment, kind, spelled = segments[0]
    if len(segments) == 1:
        keys = spelled(plan.keys)
    else:
        segment, kind = finest_segment_number(plan.paths, segments, builder), int
    common = FramePrinter(builder, score).write(plan.common)
    used, values = usable_keys(keys, kind, np.flatnonzero(plan.shares > 0.0).tolist())
    if not used:
        return common
    stacks = stacked_plans([plan.members[i] for i in used], shared=(plan.common,))
    table, names = parameter_table(stacks, plan.shares[used])
    joined = builder.look_up(segment, values, table)
    columns = {parameter: joined[name] for parameter, name in names.items()}
    own = common
    for part, (_, node) in enumerate(stacks):
        here = joined["part"] == part
        code = nw.when(here).then(joined["code"])  # other rows look up nothing
        printer = FramePrinter(builder, score, {plan.common: common}, columns, code)
        own = nw.when(here).then(printer.write(node)).otherwise(own)
    share = joined["share"]
    mixed = share * own + (1.0 - share) * common
    return nw.when(share.is_null()).then(common).otherwise(mixed)


def usable_keys(
    keys: Sequence[Any], kind: type, some: Sequence[int] | None = None
) -> tuple[list[int], Column]:
    """The keys that a column of this type can hold: their numbers, and their values."""
    known = [i for i in (range(len(keys)) if some is None else some) if type(keys[i]) is kind]
    places = [i for i in known if kind is str or -(2**63) <= keys[i] < 2**63]
    values = [keys[i] for i in places]
    return places, values if kind is str else np.array(values, dtype=np.int64)


def finest_segment_number(
    keys: Sequence[tuple[str | int, ...]],
    columns: Sequence[SegmentColumn],
    builder: FrameBuilder,
    *,
    whole_only: bool = False,
) -> nw.Expr:
    """The number of each row's finest known segment, where several columns make segments; NULL for
    none. With ``whole_only`` a segment must be given by all columns."""
    before = place = nw.lit(None, nw.Int64())
    steps = column_steps(keys)
    for i, (column, step) in enumerate(zip(columns, steps, strict=False)):
        codes, known = usable_keys(column.spelled(tuple(step.values)), column.kind)
        if not codes:
            return nw.lit(None, nw.Int64()) if whole_only else place
        value = builder.look_up(column.value, known, {"n": np.array(codes)})["n"]
        pair = before * len(step.values) + value if i else value
        table = {"n": np.array(step.numbers), "place": np.array(step.places)}
        joined = builder.look_up(pair, np.array(step.pairs), table)
        before, found = joined["n"], joined["place"]
        if i and not whole_only:
            found = nw.when(~found.is_null()).then(found).otherwise(place)
        place = builder.keep(found)
    return place


# --- Plans of rows as expressions of several columns, one for each class --------------------------


Columns = list[nw.Expr]


class RowFramePrinter(PlanPrinter[Columns]):
    """Writes the plan of several scores as expressions of a frame, one for each class.

    What is read more than once becomes columns of the builder's frame, all of a row in one step.
    """

    def __init__(self, builder: FrameBuilder, scores: Sequence[str]) -> None:
        self.builder, self.scores = builder, list(scores)
        self.known = {}

    def row_input(self, node: nodes.RowInput) -> Columns:
        return [nw.col(name) for name in self.scores]

    def each_column(self, node: nodes.EachColumn) -> Columns:
        names = self._named(node.row)
        writers = [partial(self._member, own, names[j]) for j, own in node.members]
        return self.builder.keep_all(self.builder.side_by_side(writers))

    def _named(self, row: Node) -> list[str]:
        """The names of columns that hold the entries of a row."""
        if isinstance(row, nodes.RowInput):
            return self.scores
        return self.builder.add_apart(self.write(row))

    def _member(self, node: Node, column: str) -> nw.Expr:
        most = self.builder.most_branches
        return FramePrinter(self.builder, column, comparisons=most).write(node)

    def within(self, node: nodes.Within) -> Columns:
        return self.builder.keep_all(self._moved(node.row, node.low, node.high))

    def logarithms(self, node: nodes.Logarithms) -> Columns:
        return self.builder.ln_all(self._moved(node.row, node.floor, 1.0))

    def _moved(self, row: Node, low: float, high: float) -> Columns:
        """The entries of a row, clipped to an interval."""
        ends = [self.builder.constant(end) for end in (low, high)]
        return [clipped_expression(x, *ends) for x in self.write(row)]

    def affine(self, node: nodes.Affine) -> Columns:
        x, constant = self.write(node.row), self.builder.constant
        bias = np.zeros(len(x)) if node.bias is None else node.bias
        if node.matrix.ndim < 2:
            factors = np.broadcast_to(node.matrix, len(x)).tolist()
            sums = [constant(w) * own for w, own in zip(factors, x, strict=True)]
        else:
            sums = [
                sum_of_columns([constant(w) * own for w, own in zip(row, x, strict=True) if w])
                if any(row)
                else constant(0.0)
                for row in node.matrix.tolist()
            ]
        made = [own + constant(b) if b else own for own, b in zip(sums, bias.tolist(), strict=True)]
        return self.builder.keep_all(made)

    def softmax_row(self, node: nodes.SoftmaxRow) -> Columns:
        e, _ = self._relative_powers(node.row)
        whole = self.builder.keep(sum_of_columns(e))
        return [own / whole for own in e]

    def log_softmax(self, node: nodes.LogSoftmax) -> Columns:
        e, top = self._relative_powers(node.row)
        log = self.builder.ln(sum_of_columns(e))
        return self.builder.keep_all([x - top - log for x in self.write(node.row)])

    def _relative_powers(self, node: Node) -> tuple[Columns, nw.Expr]:
        """exp(value − largest value) for each entry of a row, and the largest value."""
        z = self.write(node)
        top = self.builder.keep(nw.max_horizontal(*z))
        return self.builder.keep_all([(x - top).exp() for x in z]), top

    def relative_power(self, node: nodes.RelativePower) -> Columns:
        x, zero = self.write(node.row), self.builder.constant(0.0)
        top = self.builder.keep(nw.max_horizontal(*x))
        size = self.builder.keep(as_divisor(top))
        x = self.builder.keep_all([nw.max_horizontal(own, zero) / size for own in x])
        power = self.builder.constant(node.power)
        logs = self.builder.ln_all([as_divisor(own) for own in x])
        powers = [(power * log).exp() for log in logs]
        some = zip(x, powers, strict=True)
        return self.builder.keep_all(
            [nw.when(own > 0.0).then(raised).otherwise(nw.lit(0.0)) for own, raised in some]
        )

    def normalised(self, node: nodes.Normalised) -> Columns:
        x = self.builder.keep_all(self.write(node.row))
        size = self.builder.keep(as_divisor(sum_of_columns(x)))
        return self.builder.keep_all([own / size for own in x])

    def row_average(self, node: nodes.RowAverage) -> Columns:
        weighed = [
            [self.builder.constant(weight) * own for own in self.write(row)]
            for weight, row in node.terms
        ]
        return self.builder.keep_all([sum_of_columns(own) for own in zip(*weighed, strict=True)])

    def largest_mapped(self, node: nodes.LargestMapped) -> Columns:
        """The formula of `row_nodes.with_largest`."""
        keep, keep_all, k = self.builder.keep, self.builder.keep_all, float(node.k)
        one, zero = nw.lit(1.0), nw.lit(0.0)
        p = keep_all(self.write(node.row))
        [name] = self.builder.add_apart([nw.max_horizontal(*p)])
        top = nw.col(name)
        ties = keep(sum_of_columns([nw.when(own >= top).then(one).otherwise(zero) for own in p]))
        others = keep_all([nw.when(own < top).then(own).otherwise(zero) for own in p])
        second, rest = keep_all([nw.max_horizontal(*others), sum_of_columns(others)])
        mapped = keep(self._member(node.member, name))
        size = keep(as_divisor(rest))
        equal = nw.when(rest > 0.0).then(second / (size + ties * second))
        least = keep(nodes.AHEAD * equal.otherwise(nw.lit(1.0 / k)))
        first = keep(clipped_expression(mapped, least, 1.0 / ties))
        left = keep(nw.max_horizontal(1.0 - ties * first, zero))
        even = keep(1.0 / nw.max_horizontal(k - ties, one))
        shares = [nw.when(rest > 0.0).then(own / size).otherwise(even) * left for own in others]
        pairs = zip(p, shares, strict=True)
        return [nw.when(own >= top).then(first).otherwise(share) for own, share in pairs]

    def combined(self, node: nodes.Combined) -> Columns:
        """The entries divided by their sum. Combiners that iterate are refused earlier."""
        r = self.builder.keep_all(self.write(node.row))
        whole = self.builder.keep(sum_of_columns(r))
        size = self.builder.keep(as_divisor(whole))
        even = self.builder.constant(1.0 / len(r))
        return [nw.when(whole > 0.0).then(own / size).otherwise(even) for own in r]


def sum_of_columns(columns: Sequence[nw.Expr]) -> nw.Expr:
    """The sum of columns, as a balanced tree; NULL if one of them is."""
    found = list(columns)
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=False)
        found = [a + b for a, b in pairs] + found[len(found) // 2 * 2 :]
    return found[0]


# --- A lazy frame that gets helper columns while an expression is written for it ------------------


Lazy = nw.LazyFrame[Any]


def clipped_expression(value: nw.Expr, least: nw.Expr, most: nw.Expr) -> nw.Expr:
    """A value clipped to an interval."""
    return nw.min_horizontal(nw.max_horizontal(value, least), most)


def as_divisor(value: nw.Expr) -> nw.Expr:
    """A value that can be a divisor: itself where it is above 0, else 1."""
    return nw.when(value > 0.0).then(value).otherwise(nw.lit(1.0))


class _Columns(NamedTuple):
    """New columns of a frame, to be added in one step: expressions, or a function of columns."""

    function: str | None
    made: dict[str, Any]


#: a change of the frame: new columns, or anything else
Change = _Columns | Callable[[Lazy], Lazy]


class FrameBuilder:
    """A lazy frame to which helper columns are added while an expression is written."""

    def __init__(self, frame: nw.LazyFrame[Any]) -> None:
        self.frame = frame
        # numbers reach Ibis' engines as the text of a decimal, whose last bit may be lost
        self._inexact = frame.implementation.is_ibis()
        self.most_branches = most_branches(frame)
        self._prefix = "__calibrant_"
        while any(name.lower().startswith(self._prefix) for name in frame.collect_schema().names()):
            self._prefix += "_"
        self._made = 0
        self._waiting: list[Change] | None = None

    def side_by_side(self, writers: Sequence[Callable[[], nw.Expr]]) -> list[nw.Expr]:
        """Run several writers that do not depend on each other, and add their columns in as few
        steps as possible.

        Their first changes of the frame are made together, then their second ones, and so on: for
        many columns engines need few steps, each of which they check from the beginning.
        """
        found: list[nw.Expr] = []
        lists: list[list[Change]] = []
        for write in writers:
            self._waiting = []
            lists.append(self._waiting)
            found.append(write())
        self._waiting = None
        for step in zip_longest(*lists):
            together: dict[str | None, dict[str, Any]] = {}
            for change in step:
                if isinstance(change, _Columns):
                    together.setdefault(change.function, {}).update(change.made)
            for function, made in together.items():
                self._change_frame(_Columns(function, made))
            for change in step:
                if change is not None and not isinstance(change, _Columns):
                    self._change_frame(change)
        return found

    def _change_frame(self, change: Change) -> None:
        """Change the frame now, or note the change for `side_by_side`."""
        if self._waiting is not None:
            self._waiting.append(change)
        elif not isinstance(change, _Columns):
            self.frame = change(self.frame)
        elif change.function is None:
            named = (own.alias(name) for name, own in change.made.items())
            self.frame = self.frame.with_columns(*named)
        else:
            self.frame = with_ln_or_sqrt(self.frame, change.function, change.made)

    def constant(self, value: float) -> nw.Expr:
        """A constant, exact to the last bit."""
        if self._inexact:
            return nw.lit(repr(float(value))).cast(nw.Float64)
        return nw.lit(float(value))

    def add(self, expression: nw.Expr) -> str:
        """Add an expression as a column; its name."""
        return self.add_all([expression])[0]

    def add_all(self, expressions: Sequence[nw.Expr]) -> list[str]:
        """Add several expressions as columns in one step; their names."""
        names = [self._name() for _ in expressions]
        self._change_frame(_Columns(None, dict(zip(names, expressions, strict=True))))
        return names

    def add_apart(self, expressions: Sequence[nw.Expr]) -> list[str]:
        """Add expressions as columns that hide how they were computed; their names."""
        into = {name: self._name() for name in self.add_all(expressions)}
        self._change_frame(lambda frame: hide_formulas(frame, into))
        return list(into.values())

    def keep(self, expression: nw.Expr) -> nw.Expr:
        """Add an expression as a column, and return the column."""
        return nw.col(self.add(expression))

    def keep_all(self, expressions: Sequence[nw.Expr]) -> list[nw.Expr]:
        """Add several expressions as columns in one step, and return the columns."""
        return [nw.col(name) for name in self.add_all(expressions)]

    def change(self, count: int, change: Callable[[Lazy, list[str]], Lazy]) -> list[nw.Expr]:
        """Let a function add so many columns to the frame, and return the columns."""
        new = [self._name() for _ in range(count)]
        self._change_frame(lambda frame: change(frame, new))
        return [nw.col(name) for name in new]

    def ln(self, expression: nw.Expr) -> nw.Expr:
        """The natural logarithm of positive numbers."""
        return self.ln_all([expression])[0]

    def ln_all(self, expressions: Sequence[nw.Expr]) -> list[nw.Expr]:
        """The natural logarithms of several columns of positive numbers."""
        return self._add_by_function("ln", expressions)

    def _add_by_function(self, function: str, expressions: Sequence[nw.Expr]) -> list[nw.Expr]:
        """Add ln or sqrt of several expressions as columns, and return the columns."""
        into = {column: self._name() for column in self.add_all(expressions)}
        self._change_frame(_Columns(function, into))
        return [nw.col(name) for name in into.values()]

    def cell(self, column: str, grid: Grid) -> nw.Expr:
        """The number of the grid cell that each value of a column is in."""
        cells = grid.cells
        if cells is not None:
            if grid.first:
                column = self.add(nw.col(column) - self.constant(grid.first))
            chooser = column
            return self.change(1, lambda frame, new: cells.add_to(frame, chooser, new[0]))[0]
        first, last = self.constant(grid.first), self.constant(grid.last)
        # NULL may find a row here; its values are not used in the end
        t = clipped_expression(nw.col(column), first, last)
        if (grid.first, grid.last) != (0.0, 1.0):
            t = (t - first) * self.constant(grid.factor)
        for _ in range(grid.roots):
            [t] = self._add_by_function("sqrt", [t])
        return (t * float(grid.count)).floor().cast(nw.Int32)

    def listed(self, grid: Grid, found: Regions) -> tuple[Index, Index]:
        """Pairs of a cell and a region that overlap. Where an engine loses the last bits,
        neighbouring cells count as well."""
        beside = int(self._inexact and grid.cells is not None)
        return regions_by_cell(grid, found.low, found.high, beside)

    def look_up(
        self, key: nw.Expr, values: Column, table: Mapping[str, Column]
    ) -> dict[str, nw.Expr]:
        """Join a table to the frame where its ``values`` equal the ``key``; its columns by name."""
        on = self.add(key)
        named = {name: self._name() for name in table}
        whole = {on: values} | {named[name]: column for name, column in table.items()}
        self._change_frame(lambda frame: left_join(frame, whole, on))
        return {name: nw.col(new) for name, new in named.items()}

    def within(self, column: str, low: nw.Expr, high: nw.Expr) -> None:
        """Of several joined rows for one row, keep the one whose interval holds the column."""
        value = nw.col(column)
        inside = low.is_null() | ((value >= low) & (value <= high))
        self._change_frame(lambda frame: frame.filter(inside))

    def _name(self) -> str:
        self._made += 1
        return f"{self._prefix}{self._made}"


# --- What differs between engines: the kinds of frame, names of columns, limits and functions -----


#: how many pieces a tree of comparisons may choose among: on Spark, and elsewhere
SHORT, MANY = 8, 256
#: the kinds of frame by narwhals' name for their engine
EAGER = ("pandas", "polars", "pyarrow", "modin", "cudf")


def open_frame(frame: Any) -> nw.DataFrame[Any] | Lazy:
    """A frame of any supported kind, opened by narwhals; anything else is refused."""
    paths = frame if isinstance(frame, (list, tuple)) else [frame]
    if paths and all(isinstance(path, (str, os.PathLike)) for path in paths):
        raise InputError(_open_it(os.fspath(paths[0])))
    opened = to_narwhals(frame)
    if isinstance(opened, nw.LazyFrame) and opened.implementation in LAZY:
        return opened
    if isinstance(opened, nw.DataFrame) and opened.implementation.value in EAGER:
        return opened
    kind = f"{type(frame).__module__}.{type(frame).__name__}"
    raise InputError(
        "frame must be a DuckDB relation, a Polars LazyFrame, a PySpark or Dask DataFrame or an "
        f"Ibis table (or a pandas, Polars or Arrow table in memory), but {kind} came."
    )


def _open_it(path: str) -> str:
    """The error text for a path in place of a frame: how to open it.

    >>> print(_open_it("new.csv"))
    frame must be a frame, but the path of a file came: 'new.csv'. Open it, for example with \
duckdb.read_csv('new.csv'), and pass what that returns. To write another file with the new \
column: calibrant apply calibrator.json new.csv -o calibrated.csv
    """
    name, packed = (path[: -len(".gz")], ".gz") if path.endswith(".gz") else (path, "")
    ending = os.path.splitext(name)[1]
    readers = {".csv": "read_csv", ".tsv": "read_csv", ".json": "read_json", ".jsonl": "read_json"}
    reader = readers.get(ending, "read_parquet")
    return (
        f"frame must be a frame, but the path of a file came: {path!r}. Open it, for example with "
        f"duckdb.{reader}({path!r}), and pass what that returns. To write another file with the "
        f"new column: calibrant apply calibrator.json {path} -o calibrated{ending}{packed}"
    )


def most_branches(frame: Lazy) -> int:
    """Up to how many pieces a tree of comparisons is better than a join.

    Zero on Polars, which computes all branches for all rows. Few on Spark, where the tree becomes
    one Java method, and long methods are not compiled.
    """
    if frame.implementation.is_polars():
        return 0
    return SHORT if is_spark(frame) else MANY


def is_spark(frame: Lazy) -> bool:
    """Whether it is a frame of Spark."""
    return frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect()


def hide_formulas(frame: Lazy, into: Mapping[str, str]) -> Lazy:
    """The frame with copies of columns that hide from Spark how they were computed.

    For Spark, which otherwise writes the formula of a join's key out to its first inputs: with
    many classes a formula of millions of terms.
    """
    if not is_spark(frame):
        return frame.with_columns(*(nw.col(own).alias(name) for own, name in into.items()))
    fields = ", ".join(f"`{own}` AS `{name}`" for own, name in into.items())
    rows: Any = frame.to_native()
    opened: Lazy = nw.from_native(rows.selectExpr("*", f"inline(array(struct({fields})))"))
    return opened
