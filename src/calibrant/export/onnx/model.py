"""`to_onnx`: a calibrator as an ONNX model of its own, or together with its model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.errors import InputError, ParameterError
from calibrant.export.lookup_tables import column_steps, stacked_plans
from calibrant.export.onnx.graph import (
    Graph,
    Tensor,
    add_nodes,
    between_logits,
    log_of,
    log_softmax,
    logit_of,
    neg_log_rest_of,
    onnx,
    shares_of,
    sigmoid_of,
    softmax_of,
    softplus_of,
    sum_of,
    tensor_info,
)
from calibrant.fitting.fitted import (
    FittedCalibrator,
    TreeParts,
    map_of,
    to_fitted_map,
    tree_parts_of,
)
from calibrant.losses import LARGEST, log_p, logit
from calibrant.rules import combiners
from calibrant.rules.base import Map, VectorMap
from calibrant.rules.plan import nodes
from calibrant.rules.plan.nodes import Node, Number, Pieces, PlanColumn, PlanPrinter, values_of
from calibrant.version import __version__

#: the domain of operators for classical models
ML = "ai.onnx.ml"
ONNX = nodes.PlanTarget(
    "ONNX", "Apply it in memory: calibrate, or predict_proba for several classes."
)
#: logits of rows are cut at ± this in float32
LARGEST_LOGIT_32 = 1e15
#: the largest coefficient or end of a line whose products float32 can hold
LARGEST_IN_FLOAT32 = 1e18
#: the oldest operators that suffice, and the format of files that goes with them
OPSET, ML_OPSET, IR = 13, 2, 7
#: float= by number of bits
TYPES: dict[int, np.dtype[Any]] = {32: np.dtype(np.float32), 64: np.dtype(np.float64)}
INPUTS = ("score", "logit")


def to_onnx(calibrator: FittedCalibrator | Map, *, input: str = "score", float: int = 64) -> Any:
    """A calibrator as an ONNX model: scores in, calibrated probabilities out.

    Parameters
    ----------
    calibrator : fitted calibrator, what `load` returns, a map, or a `CalibratedClassifier`
        The last is written whole, with its models: they are converted by skl2onnx, those of
        LightGBM and XGBoost by onnxmltools. What these cannot convert, convert yourself, and use
        `compose_onnx`.
    input : {"score", "logit"}, default="score"
        What the model's input is: the score that `calibrate` takes; or, for a calibrator fitted
        to probabilities, their logits z, as nets give them: the result is that of
        `calibrate(sigmoid(z))`, without the rounding of σ(z) to 1. Rows of several classes hold
        the logits whose softmax the calibrator takes.
    float : {64, 32}, default=64
        The bits of the numbers that come, go, and are computed with. The features, the model and
        the probabilities of a `CalibratedClassifier` are float32 in either case.

    Returns
    -------
    onnx.ModelProto
        Write it with ``onnx.save``. For one score: input ``"score"`` (n,), output
        ``"probability"`` (n,), that of ``pos_label``. For several classes or labels: (n, k) and
        ``"probabilities"`` (n, k), in the order of ``classes``. A calibrator of segments has a
        second input, ``"segment"`` (n,), of integers or strings; one of several columns has
        ``"segment_1"``, ``"segment_2"`` and so on, from coarse to fine. For a
        `CalibratedClassifier`: input ``"X"`` (n, features), or, where the model takes columns of a
        frame by their names, an input (n, 1) for each column (strings, int64 for whole numbers,
        float32 for others); outputs ``"label"`` (n,) and ``"probabilities"`` (n, k), with
        ``ensemble=True`` the mean over the folds. For a
        `FeatureCalibrator` with trees: beside ``"score"`` the inputs ``"numbers"`` (n, a) and
        ``"categories"`` (n, b) of strings, as far as trees look at such columns; the metadata name
        the columns in order, and the words of each. Truth values are ``"True"``, ``"true"``,
        ``"TRUE"`` or ``"1"``, whole numbers ``"7"`` or ``"7.0"``. NaN is a missing number. Any
        other word, also a known one in another spelling, counts as a missing category.

    Notes
    -----
    Steps, and the side of every jump, are those of `calibrate` bit for bit; with ``float=32``, of
    `calibrate` at the float32 score, the result then rounded to float32. Lines of the score are the
    same bits in double; formulas differ by about 1e-15, in float32 by about 1e-7. Lines of a logit,
    or of what another map has computed, multiply its rounding by their slope: where they are
    steep, prefer double. NaN and infinite scores give NaN.

    Opset 13; trees need TreeEnsemble of ai.onnx.ml 5, and are written in double only. A map of m
    pieces is O(m) large and takes O(log m) operations a score. The metadata hold the method, the
    classes, pos_label, which scores it is for and the version of the library.

    Examples
    --------
    >>> from calibrant.maps import Piecewise
    >>> model = to_onnx(Piecewise.step([0.5], [0.1, 0.8]), float=32)
    >>> [value.name for value in (*model.graph.input, *model.graph.output)]
    ['score', 'probability']
    """
    dtype = read_options(input, float)
    if getattr(calibrator, "takes_rows", False) and hasattr(calibrator, "members_"):
        from calibrant.export.onnx.compose import classifier_model

        return classifier_model(calibrator, input, float)
    trees = tree_parts_of(calibrator)
    if trees is not None:
        return tree_model(trees, input, dtype)
    map_, fitted = map_of(calibrator), to_fitted_map(calibrator)
    graph = Graph(dtype, OPSET)
    inputs = [tensor_info("score", dtype, ["n"])]
    output = tensor_info("probability", dtype, ["n"])
    if isinstance(map_, VectorMap):
        inputs = [tensor_info("score", dtype, ["n", map_.n_columns])]
        output = tensor_info("probabilities", dtype, ["n", map_.n_classes])
    plan = map_.plan(ONNX, input)
    opsets = {"": OPSET}
    segments = [graph.input(name) for name in segment_input_types(plan)]
    if segments:
        opsets[ML] = ML_OPSET
        inputs += [
            tensor_info(name, kind, ["n"]) for name, kind in segment_input_types(plan).items()
        ]
    graph.name(add_map_to_graph(map_, plan, graph.input("score"), segments), output.name)
    return build_onnx_model(graph, inputs, output, opsets, IR, onnx_metadata(map_.kind, fitted))


def build_onnx_model(
    graph: Graph,
    inputs: Sequence[Any],
    output: Any,
    opsets: Mapping[str, int],
    ir_version: int,
    facts: Mapping[str, str],
) -> Any:
    """The ONNX model of a finished graph, with facts in its metadata."""
    model = onnx.helper.make_model(
        onnx.helper.make_graph([], "calibrator", inputs, [output]),
        opset_imports=[onnx.helper.make_opsetid(*opset) for opset in opsets.items()],
        ir_version=ir_version,
        producer_name="calibrant",
        producer_version=__version__,
    )
    add_nodes(graph, model.graph)
    onnx.helper.set_model_props(model, facts)
    return model


def read_options(input: str, float: int) -> np.dtype[Any]:
    """The NumPy type of the graph's numbers; wrong values of ``input`` and ``float`` are
    refused."""
    if input not in INPUTS:
        raise ParameterError(f"input must be one of {INPUTS}, but {input!r} came.")
    if float not in TYPES:
        raise ParameterError(f"float must be one of {tuple(TYPES)}, but {float!r} came.")
    return TYPES[float]


def add_map_to_graph(map_: Map, plan: Node, scores: Tensor, segments: Sequence[Tensor]) -> Tensor:
    """Add a map to the graph of its scores; its probabilities, NaN for scores that are not
    finite."""
    finite, clean = finite_scores(scores)
    p = OnnxPrinter(clean, segments).write(plan)
    if isinstance(map_, VectorMap) and map_.distribution:  # one bad score spoils its row
        finite = (~finite).number().total() <= 0.0
    return finite.choose(p, np.nan)


def finite_scores(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Which scores are finite, and the scores with 0 for those that are not."""
    finite = scores.abs() <= scores.graph.largest
    return finite, finite.choose(scores, 0.0)


def onnx_metadata(kind: str, fitted: Any) -> dict[str, str]:
    """The metadata of a model: map, method, classes and version."""
    facts = {"calibrant.version": __version__, "calibrant.map": kind}
    if fitted is None:
        return facts
    if fitted.score_range is not None:
        facts["calibrant.scores"] = fitted.score_range.words()
    return facts | {
        "calibrant.method": fitted.method,
        "calibrant.classes": json.dumps(fitted.classes),
        "calibrant.pos_label": json.dumps(fitted.pos_label),
    }


# --- Plans as graphs: a rule for each kind of node ------------------------------------------------


def refuse_overflow(graph: Graph, *values: Array) -> None:
    """Refuse numbers that are too large for the products of a float32 graph."""
    if graph.dtype == np.float64:
        return
    largest = max(float(np.abs(part).max(initial=0.0)) for part in values)
    if largest > LARGEST_IN_FLOAT32:
        raise InputError(
            f"the coefficients of a formula, and the knots and logits of lines, must be at most "
            f"{LARGEST_IN_FLOAT32:g} in float32, but {largest:g} came. Export with float=64."
        )


def segment_input_types(plan: Node) -> dict[str, np.dtype[Any]]:
    """The inputs for segments by name, with their types; none where the plan has no segments."""
    if not isinstance(plan, nodes.BySegment) or not plan.keys:
        return {}
    kinds = (plan.key_type("of an ONNX graph", i) for i in range(plan.columns))
    types = (np.dtype(object if kind is str else np.int64) for kind in kinds)
    return dict(zip(plan.column_names, types, strict=True))


@dataclass
class OnnxPrinter(PlanPrinter[Tensor]):
    """Writes a plan as operations of an ONNX graph.

    Parameters
    ----------
    score : the tensor that comes in, (n,) or (n, k)
    segments : the tensors of segments, one for each column, for plans that have them
    code : for stacked plans, the number of each row's own plan
    known : nodes that have tensors already
    """

    score: Tensor
    segments: Sequence[Tensor] = ()
    code: Tensor | None = None
    known: dict[Node, Tensor] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        """The graph that the plan is written into."""
        return self.score.graph

    def number(self, number: Number) -> Tensor:
        """A parameter as a tensor: a constant, or one for each row by its plan."""
        if isinstance(number, PlanColumn) and self.code is not None:
            return self.graph.gather(number.values, self.code)
        return self.graph.constant(values_of(number)[0])

    def input(self, node: nodes.Input) -> Tensor:
        return self.score

    def constant(self, node: nodes.Constant) -> Tensor:
        if isinstance(node.value, PlanColumn):
            return self.number(node.value)
        return self.score.like(node.value)

    def clip(self, node: nodes.Clip) -> Tensor:
        return self._within(self.write(node.x), node.low, node.high)

    def _within(self, x: Tensor, low: Number, high: Number) -> Tensor:
        """A tensor clipped to an interval."""
        return x.within(self.number(low), self.number(high))

    def linear(self, node: nodes.Linear) -> Tensor:
        refuse_overflow(self.graph, values_of(node.base), *(values_of(c) for c, _ in node.terms))
        terms = [self.number(c) * self.write(term) for c, term in node.terms]
        return sum_of(terms if node.base == 0.0 else [self.number(node.base), *terms])

    # A function of a sigmoid is written as a function of the sigmoid's argument, which keeps what
    # rounding to 1 would lose. And the function of a clipped value is clipped itself: float32 has
    # no 1 − 1e-9, but it has the logit of it.

    def logit(self, node: nodes.Logit) -> Tensor:
        """The logit. That of a sigmoid is the sigmoid's argument, which keeps all digits."""
        x = _without_variables(node.x)
        if isinstance(x, nodes.Sigmoid):
            return between_logits(self.write(x.x))
        return self._clipped(x, nodes.Logit, logit) or logit_of(self.write(node.x))

    def log(self, node: nodes.Log) -> Tensor:
        """ln p. Sigmoids and clipped values are treated so that digits are kept."""
        x = _without_variables(node.x)
        if isinstance(x, nodes.Input):
            return log_of(self.write(x), most=LARGEST)
        clipped = self._clipped(x, nodes.Log, log_p)
        return clipped or -softplus_of(-self.write(nodes.Logit(node.x)))

    def minus_log_rest(self, node: nodes.MinusLogRest) -> Tensor:
        """−ln(1 − p). Sigmoids and clipped values are treated so that digits are kept."""
        x = _without_variables(node.x)
        if isinstance(x, nodes.Input):
            return neg_log_rest_of(self.write(x))
        clipped = self._clipped(x, nodes.MinusLogRest, lambda p: -np.log1p(-np.minimum(p, LARGEST)))
        return clipped or softplus_of(self.write(nodes.Logit(node.x)))

    def _clipped(
        self, x: Node, kind: Callable[[Node], Node], function: Callable[[Array], Array]
    ) -> Tensor | None:
        """A rising function of a clipped value, written as the clipped function; None if the value
        is not clipped."""
        if not isinstance(x, nodes.Clip):
            return None
        ends: list[Number] = []
        for end in (x.low, x.high):
            values = function(values_of(end))
            ends.append(PlanColumn(values) if isinstance(end, PlanColumn) else float(values[0]))
        return self._within(self.write(kind(x.x)), *ends)

    def square(self, node: nodes.Square) -> Tensor:
        z = self.write(node.x)
        return z * z

    def sigmoid(self, node: nodes.Sigmoid) -> Tensor:
        return sigmoid_of(self.write(node.x))

    def softplus(self, node: nodes.Softplus) -> Tensor:
        return softplus_of(self.write(node.x))

    def step_pieces(self, node: nodes.StepPieces) -> Tensor:
        """The value of the step on which each score lies."""
        columns, at = search_pieces(node.places, node.values, self.score, self.code)
        return self.graph.gather(columns["value"], at)

    def line_pieces(self, node: nodes.LinePieces) -> Tensor:
        """The value of the line that each number lies on."""
        place = node.places[0]
        refuse_overflow(self.graph, *(v for own in node.pieces for v in (own.left, own.right)))
        # knots that the number itself is compared with may be anywhere
        if place.function is not None and place.by_input:
            refuse_overflow(self.graph, *(own.x for own in node.pieces))
        chooser = self.score if place.by_input else self.write(node.x)
        columns, at = search_pieces(node.places, node.pieces, chooser, self.code)
        own = {name: self.graph.gather(column, at) for name, column in columns.items()}
        s, low, high = self.write(node.x), own["low"], own["high"]
        if (columns["scale"] != 1.0).any():
            s = s * own["scale"]
        reached = low + (s - own["start"]) / own["width"] * (high - low)
        if (columns["low"] <= columns["high"]).all():
            return reached.within(low, high)
        return reached.within(low.at_most(high), low.at_least(high))

    def by_segment(self, node: nodes.BySegment) -> Tensor:
        """The value by each row's own segment; by the common plan where the segment is not
        known."""
        graph, common = self.graph, self.write(node.common)
        if not node.keys or not self.segments:
            return common
        code, count = _segment_numbers(node, self.segments), len(node.keys)
        own = common
        for members, plan in stacked_plans(node.members, shared=(node.common,)):
            # rows of other groups read the first table, but their result is not used
            place, here = np.zeros(count + 1, dtype=np.int32), np.zeros(count + 1, dtype=bool)
            place[members], here[members] = np.arange(len(members)), True
            mine = graph.gather(place, code) if len(members) > 1 else None
            printer = OnnxPrinter(self.score, code=mine, known=dict(self.known))
            own = graph.gather(here, code).choose(printer.write(plan), own)
        shares = np.append(node.shares, 1.0)
        if (shares == 1.0).all():
            return own
        mixed = graph.gather(shares, code) * own + graph.gather(1.0 - shares, code) * common
        return graph.gather(shares == 1.0, code).choose(own, mixed)

    # --- rows -------------------------------------------------------------------------------------

    def row_input(self, node: nodes.RowInput) -> Tensor:
        return self.score

    def each_column(self, node: nodes.EachColumn) -> Tensor:
        """The value of each column by its own plan."""
        parts = [OnnxPrinter(self._column(node.row, j)).write(own) for j, own in node.members]
        return self.graph.columns(parts)

    def _column(self, row: Node, j: int) -> Tensor:
        """One column of a row; or the logit of its class against all others, where the plan asks
        for that."""
        if not isinstance(row, nodes.Among):
            return self.write(row).column(j)
        z = self.write(row.row)
        others = self.graph.gather(z, np.delete(np.arange(row.k), j), axis=1)
        greatest = others.greatest()
        total = (others - greatest).exp().total()
        rest = (greatest + total.log()).squeeze(1)
        return z.column(j) - rest

    def within(self, node: nodes.Within) -> Tensor:
        """A row clipped to an interval."""
        most = np.inf if self.graph.dtype == np.float64 else LARGEST_LOGIT_32
        low, high = (float(np.clip(end, -most, most)) for end in (node.low, node.high))
        return self.write(node.row).within(low, high)

    def affine(self, node: nodes.Affine) -> Tensor:
        """W·x + b for each row."""
        refuse_overflow(self.graph, node.matrix, np.zeros(1) if node.bias is None else node.bias)
        x = self.write(node.row)
        scaled = x @ node.matrix.T if node.matrix.ndim == 2 else x * node.matrix
        return scaled if node.bias is None else scaled + node.bias

    def softmax_row(self, node: nodes.SoftmaxRow) -> Tensor:
        return softmax_of(self.write(node.row))

    def logarithms(self, node: nodes.Logarithms) -> Tensor:
        return log_of(self.write(node.row), node.floor)

    def log_softmax(self, node: nodes.LogSoftmax) -> Tensor:
        return log_softmax(self.write(node.row))

    def combined(self, node: nodes.Combined) -> Tensor:
        return combine_graph(node, self.write(node.row))

    def relative_power(self, node: nodes.RelativePower) -> Tensor:
        positive = self.write(node.row).at_least(0.0)
        shares = _safe_ratio(positive, positive.greatest())
        return self.graph.op("Pow", shares, node.power)

    def normalised(self, node: nodes.Normalised) -> Tensor:
        x = self.write(node.row)
        return _safe_ratio(x, x.total())

    def largest_mapped(self, node: nodes.LargestMapped) -> Tensor:
        """The formula of `row_nodes.with_largest`."""
        p = self.write(node.row)
        top = p.greatest()
        below = p < top
        others = below.choose(p, p.like(0.0))
        ties = float(node.k) - below.number().total()
        second, rest = others.greatest(), others.total()
        some = rest > 0.0
        whole = some.choose(rest, 1.0)
        equal = some.choose(second / (whole + ties * second), 1.0 / node.k)
        mapped = OnnxPrinter(top.squeeze(1)).write(node.member).expand(1)
        first = mapped.within(equal * nodes.AHEAD, 1.0 / ties)
        left = (1.0 - ties * first).at_least(0.0)
        even = 1.0 / (float(node.k) - ties).at_least(1.0)
        share = some.choose(others / whole, even)
        return below.choose(share * left, first)

    def row_average(self, node: nodes.RowAverage) -> Tensor:
        return sum_of([self.write(row) * weight for weight, row in node.terms])


def _segment_numbers(node: nodes.BySegment, segments: Sequence[Tensor]) -> Tensor:
    """The number of each row's finest known segment; the number of segments where none is known.

    With several columns: of the finest segment that is known.
    """
    count = len(node.keys)
    if node.columns == 1:
        return encode_keys(segments[0], node.keys, range(count), count).cast(np.int32)
    place = before = None
    for segment, step in zip(segments, column_steps(node.paths), strict=False):
        value = encode_keys(segment, step.values, range(len(step.values)), -1)
        pair = value if before is None else before * len(step.values) + value
        known = value >= 0 if before is None else (value >= 0) & (before >= 0)
        pair = known.choose(pair, -1)
        found = encode_keys(pair, step.pairs, step.places, -1)
        before = encode_keys(pair, step.pairs, step.numbers, -1)
        place = found if place is None else (found >= 0).choose(found, place)
    assert place is not None
    return (place >= 0).choose(place, count).cast(np.int32)


def encode_keys(x: Tensor, keys: Sequence[Any], values: Sequence[int], default: int) -> Tensor:
    """The number that belongs to each key, by a table."""
    strings = all(isinstance(key, str) for key in keys)
    attributes = {
        "keys_strings" if strings else "keys_int64s": list(keys),
        "values_int64s": list(values),
        "default_int64": default,
    }
    return x.graph.op("LabelEncoder", x, attributes=attributes, domain=ML)


def _without_variables(node: Node) -> Node:
    """The node that a variable stands for; other nodes as they are."""
    while isinstance(node, nodes.Variable):
        node = node.value
    return node


def _safe_ratio(x: Tensor, whole: Tensor) -> Tensor:
    """Rows divided by a number of each, unless that is 0."""
    return x / (whole > 0.0).choose(whole, 1.0)


# --- Pieces of a map as tables in the graph's own type, and the search for a row's piece ----------
# The graph compares numbers of its own type with borders of that type. A border that is no float32
# is moved up to the next float32. No float32 lies between the two, so every float32 finds the piece
# that its double would.


Float = np.dtype[Any]


def rounded_up(values: Array, dtype: Float) -> NDArray[Any]:
    """The smallest numbers of a type that are at least these doubles.

    >>> rounded_up(np.array([0.5, 0.1]), np.dtype(np.float32)).astype(float) >= [0.5, 0.1]
    array([ True,  True])
    """
    with np.errstate(over="ignore"):
        near = values.astype(dtype)
        return np.where(near < values, np.nextafter(near, dtype.type(np.inf)), near)


def _piece_table(place: nodes.PieceChoice, own: Array | Pieces, dtype: Float) -> dict[str, Any]:
    """The pieces of a map as columns of the graph's type: where each begins, and its value or line.

    Steps have the column ``value``. Lines have ``low``, ``high``, ``start``, ``width`` and
    ``scale``: low + (s · scale − start) / width · (high − low), never beyond low and high, which
    is how NumPy computes it, bit for bit. In float32 a line that reads the number itself starts
    and ends at the first and last float32 of its piece, however steep it is between them. Where
    lines are flat they start at 0 and are wide, so that no product on them overflows.
    """
    low, high, piece = place.regions
    first, last = rounded_up(low, dtype), -rounded_up(-high, dtype)
    some = first <= last
    first, last, piece = first[some], last[some], piece[some]
    if not isinstance(own, Pieces):
        return {"first": first, "value": own[piece]}
    limits = np.finfo(dtype)
    largest, direct = float(limits.max), not place.by_input or place.function is None
    if direct and dtype != np.float64:
        begin, end = first.astype(np.float64), last.astype(np.float64)
        low, high = own.value(begin), own.value(end)
        flat = low == high
        width = np.where(flat, largest, end - begin)
        scale = np.where(width > largest, 0.5, 1.0)
        start, width = np.where(flat, 0.0, begin) * scale, width * scale
    else:
        start, width, low, high, _, _, scale = (column[piece] for column in own.table)
        flat = own.outer[piece]
        start = np.where(flat, 0.0, start)
        width = np.where(flat, largest, np.maximum(width, limits.smallest_subnormal))
    return {
        "first": first,
        "start": start,
        "width": width,
        "low": low,
        "high": high,
        "scale": scale,
    }


def search_pieces(
    places: Sequence[nodes.PieceChoice],
    held: Sequence[Array | Pieces],
    chooser: Tensor,
    code: Tensor | None,
) -> tuple[dict[str, Array], Tensor]:
    """The tables of pieces as columns, and the row of the piece that each number falls into.

    ``code`` is the number of each row's own table, if there are several. The binary search is
    unrolled: the place moves ahead by 2ᵇ, …, 2, 1 rows wherever that row does not begin too high.
    """
    graph = chooser.graph
    tables = [_piece_table(*both, graph.dtype) for both in zip(places, held, strict=True)]
    columns = {name: np.concatenate([own[name] for own in tables]) for name in tables[0]}
    first, sizes = columns.pop("first"), np.array([len(own["first"]) for own in tables])
    bits = int(sizes.max() - 1).bit_length()
    if code is None:  # rows that no number reaches spare the search an end
        first = np.append(first, np.full((1 << bits) - len(first), np.inf, dtype=first.dtype))
        at = chooser.like(np.int32(0)) if not bits else graph.constant(np.int32(0))
    else:
        begin = (np.cumsum(sizes) - sizes).astype(np.int32)
        at, end = graph.gather(begin, code), graph.gather(begin + sizes.astype(np.int32) - 1, code)
    for bit in reversed(range(bits)):
        ahead = at + np.int32(1 << bit)
        if code is not None:
            ahead = ahead.at_most(end)
        at = (chooser >= graph.gather(first, ahead)).choose(ahead, at)
    return columns, at


# --- Combiners for any code that iterate, as graphs: least squares on the simplex, and coupling ---
# The arithmetic is that of `maps.simplex` and `maps.combiners`, all rows at once. Rows come first
# here: r is (n, columns), matrices are (n, k, k). A loop runs until the last row is done; rows that
# are done before no longer change.


#: rounds without progress after which only one wrong class is flipped at a time
PATIENCE = 3.0


def any_true(condition: Tensor) -> Tensor:
    """Whether a condition holds in any row."""
    found = condition.graph.op("ReduceSum", condition.number(), attributes={"keepdims": 0})
    return found > 0.0


def symmetric_products(left: Array, right: Array) -> Array:
    """For each column b the symmetric part of the matrix left_b right_bᵀ, as a row of k²
    numbers."""
    both = left[:, :, None] * right[:, None, :]
    return ((both + both.transpose(0, 2, 1)) / 2.0).reshape(len(left), -1)


def weighted_matrices(x: Tensor, pattern: Array) -> Tensor:
    """For each row x the matrix Σ_b x_b · pattern_b."""
    k = round(pattern.shape[1] ** 0.5)
    return x.graph.op("Reshape", x @ pattern, np.array([-1, k, k]))


def matrix_vector(matrices: Tensor, y: Tensor) -> Tensor:
    """The products of matrices (n, k, k) with vectors (n, k)."""
    return (matrices @ y.expand(2)).squeeze(2)


def inverse_matrices(matrices: Tensor, k: int) -> Tensor:
    """The inverses of positive definite matrices.

    Sweep j of a symmetric A, with d = A_jj and c its column j: A − ccᵀ/d, but c/d in row and column
    j and −1/d where they meet. After all of them A is −A⁻¹. A pivot that is not positive changes
    its sign.
    """

    def sweep(inner: Graph, j: Tensor, state: list[Tensor]) -> tuple[None, list[Tensor]]:
        a = state[0]
        column = inner.gather(a, j, axis=2)
        d = inner.gather(column, j, axis=1).expand(1)
        d = (d > 0.0).choose(d, (-d).at_least(combiners.PIVOT))
        scaled, deep = column / d, d.expand(2)
        rest = a - scaled.expand(2) * column.expand(1)
        here = inner.op("Equal", np.arange(k), j)
        across, down = here.expand(0), here.expand(1)
        swept = (across | down).choose(a / deep, rest)
        return None, [(across & down).choose(-1.0 / deep, swept)]

    return -matrices.graph.loop(k, [matrices], sweep)[0]


def least_squares_graph(r: Tensor, code: Array, weights: Array) -> Tensor:
    """Class probabilities by least squares from columns' probabilities r, as operations of a
    graph."""
    graph, k = r.graph, len(code)
    plus, minus = (code.T > 0).astype(float), (code.T < 0).astype(float)
    mean, scale = float(weights.sum()) / k, weights[:, None]
    either = plus + minus
    constant = symmetric_products(scale * plus, plus).sum(axis=0).reshape(k, k) + mean
    full = weighted_matrices(r, symmetric_products(-2.0 * scale * plus, either))
    full = full + weighted_matrices(r * r, symmetric_products(scale * either, either)) + constant

    def pivot(inner: Graph, count: Tensor, state: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        free, fewest, patience, _ = state
        y, wrong = _solve_free(full, free, k, combiners.SIMPLEX_RIDGE * mean)
        several = wrong.number().total()
        better = several < fewest
        fewest = better.choose(several, fewest)
        patience = better.choose(PATIENCE, patience - 1.0)
        place = np.arange(1.0, k + 1.0)
        last = (wrong.number() * place).greatest() <= place
        flip = wrong & ((patience >= 0.0) | last)
        free = flip.choose(1.0 - free, free)
        return any_true(wrong), [free, fewest, patience, y]

    nothing = graph.gather(full, np.array(0), axis=2) * 0.0
    row = nothing.total()
    start = [nothing + 1.0, row + (k + 1.0), row + PATIENCE, nothing]
    return shares_of(graph.loop(combiners.PIVOTS, start, pivot)[3].at_least(0.0))


def _solve_free(full: Tensor, free: Tensor, k: int, ridge: float) -> tuple[Tensor, Tensor]:
    """One step of least squares: the solution with the other classes at 0, and which classes have
    the wrong sign."""
    small = free.expand(2) * (ridge * np.eye(k)) + (1.0 - free).expand(2) * np.eye(k)
    inverted = inverse_matrices(full * free.expand(2) * free.expand(1) + small, k)
    y = matrix_vector(inverted, free)
    for _ in range(2):
        y = y + matrix_vector(inverted, (free - matrix_vector(full, y)) * free)
    slope = matrix_vector(full, y) - 1.0
    below = y < -combiners.ZERO * y.greatest()
    kept = free > 0.5
    return y, (kept & below) | (~kept & (slope < -combiners.ZERO))


# --- coupling -----------------------------------------------------------------------------------


def coupling_graph(r: Tensor, code: Array, weights: Array) -> Tensor:
    """Class probabilities by coupling from columns' probabilities r, as operations of a graph."""
    graph, k = r.graph, len(code)
    likelihood = _CouplingGraph(r, code, weights)
    begun = least_squares_graph(r, code, weights=weights)
    open_ = ~likelihood.fits_exactly(begun)
    share = combiners.SHARE_PAIRS if likelihood.pairs else combiners.SHARE
    p = open_.choose(begun * (1.0 - share) + share / k, begun)
    start = [p, likelihood.value(p), open_.number()]
    return shares_of(graph.loop(sum(combiners.ROUNDS), start, likelihood.round)[0])


class _CouplingGraph:
    """The objective of coupling and its descent, as operations of a graph; see
    `rules.combiners`."""

    def __init__(self, r: Tensor, code: Array, weights: Array) -> None:
        columns = code.T
        self.plus, self.minus = (columns > 0).astype(float), (columns < 0).astype(float)
        self.r, self.n, self.columns = r, weights, columns
        self.k, self.total = len(code), float(weights.sum())
        self.pairs, self.full = combiners.is_pairs(code), bool((code != 0).all())

    def sums(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """For each column the probability of its positive classes, and of its negative ones."""
        return p @ self.plus.T, p @ self.minus.T

    def fits_exactly(self, p: Tensor) -> Tensor:
        """In which rows p agrees with every column's r."""
        a, b = self.sums(p)
        off = ((1.0 - self.r) * a - self.r * b).abs()
        return off.greatest() <= combiners.AGREES

    def value(self, p: Tensor) -> Tensor:
        """The objective of coupling for each row."""
        a, b = self.sums(p)
        s = a + b
        logs = self.r * (s / a).log() + (1.0 - self.r) * (s / b).log()
        return (logs * self.n).total()

    def newton(self, p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gradient, Newton's step, and the factors of the multiplicative step."""
        a, b = self.sums(p)
        s = a + b
        mutual = p.expand(2) * p.expand(1)
        if self.pairs:
            share = a / s
            v = ((share - self.r) * self.n) @ self.columns
            curve = weighted_matrices(
                share * (b / s) * self.n, symmetric_products(self.columns, self.columns)
            )
            curve = curve + mutual * self.total + np.eye(self.k) * (combiners.RIDGE * self.total)
            gain = (self.r * self.n) @ self.plus + ((1.0 - self.r) * self.n) @ self.minus
            return v, -matrix_vector(inverse_matrices(curve, self.k), v), _ratio(gain, gain + v)
        from_a, from_b = self.r * self.n / a, (1.0 - self.r) * self.n / b
        either = self.plus + self.minus
        gain, loss = from_a @ self.plus + from_b @ self.minus, (self.n / s) @ either
        v = p * (loss - gain)
        curve = weighted_matrices(from_a / a, symmetric_products(self.plus, self.plus))
        curve = curve + weighted_matrices(from_b / b, symmetric_products(self.minus, self.minus))
        if not self.full:  # else it is just what fixes the scale
            curve = (
                curve
                + self.total
                - weighted_matrices(self.n / (s * s), symmetric_products(either, either))
            )
        small = v.at_least(0.0) + (p * p + 1e-30) * (combiners.RIDGE * self.total)
        curve = curve * mutual + small.expand(2) * np.eye(self.k)
        return v, -matrix_vector(inverse_matrices(curve, self.k), v), _ratio(gain, loss)

    def round(
        self, inner: Graph, count: Tensor, state: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """One step of the descent, for every row that has not converged."""
        p, before, going = state
        open_ = going > 0.5
        v, u, factors = self.newton(p)
        done = self._converged(p, u, v)
        new = _reweighted(p, (u + 1.0).at_least(combiners.KEEP))
        after = self.value(new)
        lower = after <= before + (before + self.total) * 1e-14
        careful, less = self._shorter_steps(p, u, factors)
        new = (lower | done).choose(new, careful)
        after = (lower | done).choose(after, less)
        left = open_ & ~done
        state = [open_.choose(new, p), open_.choose(after, before), left.number()]
        return any_true(left), state

    def _converged(self, p: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """In which rows the descent has arrived."""
        done = (p * u).abs().greatest() <= combiners.MOVE
        if self.pairs:
            v = (p > combiners.TINY).choose(v, 0.0)
        else:
            done = done | ((v * u).total().abs() <= combiners.FALL * self.total)
        return done & (v.abs().greatest() <= combiners.GRADIENT * self.total)

    def _shorter_steps(self, p: Tensor, u: Tensor, factors: Tensor) -> tuple[Tensor, Tensor]:
        """The best p of some shorter steps and the multiplicative one, and its objective."""
        new = _reweighted(p, factors)
        after = self.value(new)
        inside = (1.0 - combiners.KEEP) / (-u).greatest().at_least(1.0)
        width = u.greatest() + (-u).greatest()
        mild = (width + 1.0).log() / (width > 0.0).choose(width, 1.0)
        changes = [
            (u * mild).within(-30.0, 30.0).exp(),
            (u * inside + 1.0).at_least(combiners.KEEP),
            *((u * t + 1.0).at_least(combiners.KEEP) for t in combiners.SHORTER),
        ]
        for change in changes:
            trial = _reweighted(p, change)
            value = self.value(trial)
            better = value < after
            new, after = better.choose(trial, new), better.choose(value, after)
        return new, after


def _ratio(gain: Tensor, loss: Tensor) -> Tensor:
    """gain / loss of each class; 1 where a class is in no column."""
    known = loss > combiners.FLOOR
    return known.choose(gain / known.choose(loss, 1.0), 1.0)


def _reweighted(p: Tensor, change: Tensor) -> Tensor:
    """Probabilities times factors, made to sum to 1 again."""
    return shares_of(p * change).at_least(combiners.FLOOR)


# --- Columns' probabilities r (n, columns) → class probabilities p (n, classes), as graphs --------
# The functions of the same names are in `calibrant.rules.combiners`, with their derivations.


Combiner = Callable[[Tensor, Array, Array], Tensor]

#: the most rounds of the search for the balance
ROUNDS = 120
#: stands in for a divisor of zero
TINY = {np.dtype(np.float64): 1e-300, np.dtype(np.float32): 1e-30}
#: the lightest column, as a share of the heaviest, with which float32 can compute
LIGHTEST_IN_FLOAT32 = 1e-12


def combine_graph(node: nodes.Combined, r: Tensor) -> Tensor:
    """Class probabilities from columns' probabilities, by the combiner of the node."""
    graph = r.graph
    if graph.dtype != np.float64 and node.weights.min() < LIGHTEST_IN_FLOAT32:
        raise InputError(
            f"the weights of columns must be at least {LIGHTEST_IN_FLOAT32:g} of the largest in "
            f"float32, but {node.weights.min():g} of it came. Export with float=64."
        )
    if node.rule in ("least_squares", "coupled"):
        if graph.dtype != np.float64:
            raise InputError(
                "a code other than one-against-all is combined by iterations that need doubles, "
                "but float=32 came. Export with float=64, or fit with the code 'one_vs_rest'."
            )
        # all pairs of classes have one best p for every r; so have codes without zeros whose sums
        # over positive classes fix p
        sums = np.vstack((node.code.T > 0, np.ones(len(node.code)))).astype(float)
        fixed = (node.code != 0).all() and np.linalg.matrix_rank(sums) == len(node.code)
        if not (fixed or combiners.is_all_pairs(node.code)):
            raise InputError(
                "this code leaves some rows several best answers, and a runtime might give another "
                "one than predict_proba does, so it cannot be written as ONNX. Fit with all pairs, "
                "with one_vs_rest, or with a code without zeros that tells all classes apart."
            )
    p = COMBINERS[node.rule](r, node.code, node.weights)
    if node.known.all():
        return p
    nothing = p.column(0) * 0.0
    padded = graph.op("Concat", p, nothing.expand(1), attributes={"axis": 1})
    place = np.where(node.known, np.cumsum(node.known) - 1, node.known.sum())
    return graph.gather(padded, place, axis=1)


def _normalized(r: Tensor, code: Array, weights: Array) -> Tensor:
    """Rows divided by their sum; all classes alike where it is 0."""
    total = r.total()
    some = total > 0.0
    return some.choose(r / some.choose(total, 1.0), 1.0 / len(code))


def _projected(r: Tensor, code: Array, weights: Array) -> Tensor:
    """The distribution with the least Σ n_c(p_c − r_c)², found by sorting."""
    inverse = 1.0 / weights
    graph, k = r.graph, len(inverse)
    _, by_limit = graph.ops("TopK", (r / inverse, np.array([k])), 2, {"axis": 1})
    ordered = graph.op("GatherElements", r, by_limit, attributes={"axis": 1})
    steps = graph.gather(inverse, by_limit)
    one = np.array(1)
    tau = (graph.op("CumSum", ordered, one) - 1.0) / graph.op("CumSum", steps, one)
    last = (ordered > tau * steps).choose(np.arange(k), np.zeros(k, dtype=np.int64))
    chosen = graph.op("GatherElements", tau, last.greatest(), attributes={"axis": 1})
    return shares_of((r - chosen * inverse).at_least(0.0))


def _balanced(r: Tensor, code: Array, n: Array) -> Tensor:
    """The distribution with n_c(p_c − r_c) = μ·p_c(1 − p_c), its μ found by Newton's method."""
    graph, k = r.graph, len(n)
    fine = float(np.finfo(graph.dtype).eps)
    above = r.total() > 1.0
    low = above.choose(-float(n.sum()), 0.0)
    high = above.choose(0.0, float(n.max()) * k / (k - 1.0))

    def body(inner: Graph, count: Tensor, state: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        mu, low, high, _ = state
        p, root = _balanced_root(r, n, mu)
        excess = p.total() - 1.0
        open_ = (excess.abs() > 2.0 * fine * k) & (high - low > 4.5 * fine * mu.abs())
        short = excess < 0.0
        low, high = short.choose(mu, low), short.choose(high, mu)
        slope = (p * (1.0 - p) / root.at_least(TINY[graph.dtype])).total()
        new = mu - excess / slope.at_least(TINY[graph.dtype])
        inside = (new > low) & (new < high)
        new = inside.choose(new, 0.5 * (low + high))
        return any_true(open_), [open_.choose(new, mu), low, high, p]

    start = [low * 0.0, low, high, r]
    return shares_of(graph.loop(ROUNDS, start, body)[3])


def _balanced_root(r: Tensor, n_: Array, mu: Tensor) -> tuple[Tensor, Tensor]:
    """The p in [0, 1] with n(p − r) = μ·p(1 − p), and the root of the discriminant."""
    n = mu.graph.constant(n_)
    q = n - mu
    gap = (mu > 0.0).choose(
        q * q + 4.0 * mu * n * r, (n + mu) * (n + mu) - 4.0 * mu * n * (1.0 - r)
    )
    root = gap.at_least(0.0).sqrt()
    positive = q > 0.0
    upper = (root - q) / positive.choose(1.0, 2.0 * mu)
    lower = 2.0 * n * r / positive.choose(q + root, 1.0)
    return positive.choose(lower, upper).at_most(1.0), root


COMBINERS: dict[str, Combiner] = {
    "normalized": _normalized,
    "projected": _projected,
    "balanced": _balanced,
    "least_squares": least_squares_graph,
    "coupled": coupling_graph,
}


# --- Trees on the columns of a row as an ONNX model: a TreeEnsemble for each round ----------------


#: TreeEnsemble came with ai.onnx.ml 5, and that with these versions
TREES_OPSET, TREES_ML_OPSET, TREES_IR = 21, 5, 10
#: ONNX's number for "up to"
UP_TO = 0
#: what each split says, as TreeEnsemble calls it
SPLIT = (
    "nodes_featureids",
    "nodes_splits",
    "nodes_missing_value_tracks_true",
    "nodes_truenodeids",
    "nodes_trueleafs",
    "nodes_falsenodeids",
    "nodes_falseleafs",
)


def tree_model(parts: TreeParts, input: str, dtype: np.dtype[Any]) -> Any:
    """The model of a calibrator with trees, which takes a score, numbers and categories."""
    if input != "score" or dtype != np.float64:
        raise ParameterError(
            "a calibrator of trees is written for scores in double only: leave input and float out."
        )
    graph = Graph(dtype, TREES_OPSET)
    numeric = {j: c.name for j, c in enumerate(parts.columns) if c.categories is None}
    nominal = {j: c.name for j, c in enumerate(parts.columns) if c.categories is not None}
    words = {j: _category_words(parts.columns[j].categories or ()) for j in nominal}
    inputs = [tensor_info("score", dtype, ["n"])]
    if numeric:
        inputs.append(tensor_info("numbers", dtype, ["n", len(numeric)]))
    if nominal:
        inputs.append(tensor_info("categories", object, ["n", len(nominal)]))
    finite, clean = finite_scores(graph.input("score"))
    z = logit_of(OnnxPrinter(clean).write(parts.start.plan(ONNX)))
    codes = {}
    for i, (j, own) in enumerate(words.items()):
        column = graph.input("categories").column(i)
        codes[j] = encode_keys(column, list(own), list(own.values()), 0)
    for first, last, factor in parts.ends:
        z = factor * (z + _add_tree_ensemble(parts, first, last, z, list(numeric), codes))
    output = tensor_info("probability", dtype, ["n"])
    graph.name(finite.choose(sigmoid_of(z), np.nan), output.name)
    facts = onnx_metadata("trees", parts.facts) | {
        "calibrant.numbers": json.dumps(list(numeric.values())),
        "calibrant.categories": json.dumps(list(nominal.values())),
        "calibrant.words": json.dumps([list(own) for own in words.values()]),
        "calibrant.other_words": "count as missing categories",
    }
    return build_onnx_model(
        graph, inputs, output, {"": TREES_OPSET, ML: TREES_ML_OPSET}, TREES_IR, facts
    )


def _add_tree_ensemble(
    parts: TreeParts, first: int, last: int, z: Tensor, numeric: list[int], codes: dict[int, Tensor]
) -> Tensor:
    """Add the trees of a round to the graph; what they add to the logit z of each row."""
    graph, trees, columns = z.graph, _TreeEnsemble(parts, first, last, numeric), [z]
    for column, subset in trees.sets:
        inside = np.zeros(len(parts.columns[column].categories or ()) + 1)
        inside[[1 + code for code in parts.trees.sets[subset]]] = 1.0
        columns.append(graph.gather(inside, codes[column]))
    rows = graph.columns(columns, beside=[graph.input("numbers")] if numeric else [])
    return graph.op("TreeEnsemble", rows, attributes=trees.attributes(), domain=ML).squeeze(1)


class _TreeEnsemble:
    """The trees of a round, as attributes of ONNX's operator TreeEnsemble."""

    def __init__(self, parts: TreeParts, first: int, last: int, numeric: list[int]) -> None:
        self.trees = parts.trees
        #: where trees find each column that they look at; the logit stands behind the numbers
        self.place = {j: i for i, j in enumerate([*numeric, len(parts.columns)])}
        self.sets: list[tuple[int, int]] = []
        self.splits: list[tuple[float, ...]] = []  # in the order of `SPLIT`
        self.weights: list[float] = []
        self.roots = [self._add_split(int(root)) for root in self.trees.roots[first:last]]

    def _add_leaf(self, node: int) -> int:
        """Add a leaf; its number."""
        self.weights.append(float(self.trees.leaves[-1 - node]))
        return len(self.weights) - 1

    def _add_split(self, node: int) -> int:
        """Add a split and all below it; its number.

        A leaf is written as a split whose ways both lead to it.

        So is a leaf on the left of a split that has another on its right: ONNX Runtime before 1.30
        gives wrong sums of these.
        """
        trees, place, logit = self.trees, len(self.splits), len(self.place) - 1
        self.splits.append(())  # until the places of its branches are known
        if node < 0:
            self.splits[place] = (logit, 0.0, 0, self._add_leaf(node), 1, self._add_leaf(node), 1)
            return place
        column, subset = int(trees.column[node]), int(trees.subset[node])
        ways = [int(trees.left[node]), int(trees.right[node])]
        if subset >= 0:  # 1 in the set, 0 outside
            self.sets.append((column, subset))
            looked, threshold, gone = logit + len(self.sets), 0.5, 0
            ways.reverse()
        else:
            looked, threshold = self.place[column], float(trees.threshold[node])
            gone = int(trees.missing_left[node])
        ends: list[int] = []
        for child in ways:
            as_split = child >= 0 or (child == ways[0] and ways[1] >= 0)
            ends += [self._add_split(child), 0] if as_split else [self._add_leaf(child), 1]
        self.splits[place] = (looked, threshold, gone, *ends)
        return place

    def attributes(self) -> dict[str, Any]:
        """The attributes of the operator."""
        columns = map(list, zip(*self.splits, strict=True))
        splits: dict[str, Any] = dict(zip(SPLIT, columns, strict=True))
        return splits | {
            "aggregate_function": 1,
            "post_transform": 0,
            "n_targets": 1,
            "nodes_splits": np.array(splits["nodes_splits"]),
            "nodes_modes": np.full(len(self.splits), UP_TO, dtype=np.uint8),
            "leaf_targetids": [0] * len(self.weights),
            "leaf_weights": np.array(self.weights),
            "tree_roots": self.roots,
        }


#: how truth values are written, beside the numbers that they equal
TRUTH = {0: ("False", "false", "FALSE"), 1: ("True", "true", "TRUE")}


def _category_words(categories: tuple[Any, ...]) -> dict[str, int]:
    """The words that stand for categories, in all usual spellings, with their codes from 1 on.

    Truth values and numbers come in all their usual spellings.

    >>> list(_category_words((False, True)))
    ['False', 'True', 'false', 'FALSE', '0', '0.0', 'true', 'TRUE', '1', '1.0']
    """
    plain = (int(c) if isinstance(c, float) and c.is_integer() else c for c in categories)
    words = [str(category) for category in plain]
    if len(set(words)) < len(words):
        alike = [c for c, word in zip(categories, words, strict=True) if words.count(word) > 1]
        raise InputError(
            "an ONNX model takes categories as strings, but two of this calibrator's are spelled "
            f"alike: {alike[:4]}. Convert them to strings before the fit."
        )
    found = {word: code for code, word in enumerate(words, start=1)}
    for code, category in enumerate(categories, start=1):
        if not isinstance(category, str) and category == (whole := int(category)):
            for word in (*TRUTH.get(whole, ()), str(whole), f"{whole}.0"):
                found.setdefault(word, code)
    return found
