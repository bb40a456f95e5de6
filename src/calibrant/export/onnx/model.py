"""`to_onnx`: a calibrator as an ONNX model of its own, or together with its model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.errors import InputError, ParameterError
from calibrant.export.onnx.graph import (
    Graph,
    Tensor,
    add_nodes,
    logit_of,
    onnx,
    sigmoid_of,
    tensor_info,
)
from calibrant.export.onnx.printer import ML, ONNX, OnnxPrinter, encoded, segment_inputs
from calibrant.fitting.fitted import fitted_of, map_of, tree_parts_of
from calibrant.rules.base import Map, VectorMap
from calibrant.rules.plan.nodes import Node
from calibrant.rules.plan.tables import TreeParts
from calibrant.version import __version__

#: the oldest operators that suffice, and the format of files that goes with them
OPSET, ML_OPSET, IR = 13, 2, 7
#: float= by number of bits
TYPES: dict[int, np.dtype[Any]] = {32: np.dtype(np.float32), 64: np.dtype(np.float64)}
INPUTS = ("score", "logit")


def to_onnx(calibrator: Any, *, input: str = "score", float: int = 64) -> Any:
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
        `CalibratedClassifier`: input ``"X"`` (n, features), outputs ``"label"`` (n,) and
        ``"probabilities"`` (n, k), with ``ensemble=True`` the mean over the folds. For a
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
    map_, fitted = map_of(calibrator), fitted_of(calibrator)
    graph = Graph(dtype, OPSET)
    inputs = [tensor_info("score", dtype, ["n"])]
    output = tensor_info("probability", dtype, ["n"])
    if isinstance(map_, VectorMap):
        inputs = [tensor_info("score", dtype, ["n", map_.n_columns])]
        output = tensor_info("probabilities", dtype, ["n", map_.n_classes])
    plan = map_.plan(ONNX, input)
    opsets = {"": OPSET}
    segments = [graph.input(name) for name in segment_inputs(plan)]
    if segments:
        opsets[ML] = ML_OPSET
        inputs += [tensor_info(name, kind, ["n"]) for name, kind in segment_inputs(plan).items()]
    graph.name(written(map_, plan, graph.input("score"), segments), output.name)
    return assembled(graph, inputs, output, opsets, IR, facts_of(map_.kind, fitted))


def assembled(
    graph: Graph,
    inputs: Sequence[Any],
    output: Any,
    opsets: Mapping[str, int],
    ir_version: int,
    facts: Mapping[str, str],
) -> Any:
    """The model of a graph, with facts about it in its metadata."""
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
    """The type of a graph's numbers, once the words are known to be ours."""
    if input not in INPUTS:
        raise ParameterError(f"input must be one of {INPUTS}, but {input!r} came.")
    if float not in TYPES:
        raise ParameterError(f"float must be one of {tuple(TYPES)}, but {float!r} came.")
    return TYPES[float]


def written(map_: Map, plan: Node, scores: Tensor, segments: Sequence[Tensor]) -> Tensor:
    """The nodes of a map's plan, of scores (n,) or (n, k); NaN where a score is not finite."""
    finite, clean = guarded(scores)
    p = OnnxPrinter(clean, segments).write(plan)
    if isinstance(map_, VectorMap) and map_.distribution:  # one bad score spoils its row
        finite = (~finite).number().total() <= 0.0
    return finite.choose(p, np.nan)


def guarded(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Which scores are finite, and the scores with 0 in place of the others."""
    finite = scores.abs() <= scores.graph.largest
    return finite, finite.choose(scores, 0.0)


def facts_of(kind: str, fitted: Any) -> dict[str, str]:
    """What the metadata of a model say of its calibrator: the kind of its map, and what is known of
    the fitted value, in words, with labels as JSON."""
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
    """The model of a score, numbers and categories."""
    if input != "score" or dtype != np.float64:
        raise ParameterError(
            "a calibrator of trees is written for scores in double only: leave input and float out."
        )
    graph = Graph(dtype, TREES_OPSET)
    numeric = [j for j, c in enumerate(parts.columns) if c.categories is None]
    nominal = [j for j, c in enumerate(parts.columns) if c.categories is not None]
    inputs = [tensor_info("score", dtype, ["n"])]
    if numeric:
        inputs.append(tensor_info("numbers", dtype, ["n", len(numeric)]))
    if nominal:
        inputs.append(tensor_info("categories", object, ["n", len(nominal)]))
    finite, clean = guarded(graph.input("score"))
    z = logit_of(OnnxPrinter(clean).write(parts.start.plan(ONNX)))
    blocks = _TreeInputs(graph, parts, numeric, nominal)
    for first, last, factor in parts.ends:
        z = factor * (z + blocks.leaves(z, first, last))
    output = tensor_info("probability", dtype, ["n"])
    graph.name(finite.choose(sigmoid_of(z), np.nan), output.name)
    names = {
        "calibrant.numbers": json.dumps([parts.columns[j].name for j in numeric]),
        "calibrant.categories": json.dumps([parts.columns[j].name for j in nominal]),
        "calibrant.words": json.dumps(
            [list(_spellings(parts.columns[j].categories or ())) for j in nominal]
        ),
        "calibrant.other_words": "count as missing categories",
    }
    facts = facts_of("trees", parts.facts) | names
    return assembled(graph, inputs, output, {"": TREES_OPSET, ML: TREES_ML_OPSET}, TREES_IR, facts)


class _TreeInputs:
    """What trees look at: numbers, the logit, and for each set of categories who is in it."""

    def __init__(
        self, graph: Graph, parts: TreeParts, numeric: list[int], nominal: list[int]
    ) -> None:
        self.graph, self.parts = graph, parts
        self.place = {j: i for i, j in enumerate(numeric)}
        self.numbers = graph.input("numbers") if numeric else None
        self.codes: dict[int, Tensor] = {}
        for i, j in enumerate(nominal):
            words = _spellings(parts.columns[j].categories or ())
            column = graph.input("categories").column(i)
            self.codes[j] = encoded(column, list(words), list(words.values()), 0)

    def leaves(self, z: Tensor, first: int, last: int) -> Tensor:
        """The sum of what the trees of one round give, shape (n,)."""
        writer = _Ensemble(self.parts, first, last, self.place)
        sets = [self._member(j, s) for j, s in writer.sets]
        parts = [] if self.numbers is None else [self.numbers]
        parts += [column.expand(1) for column in (z, *sets)]
        rows = parts[0]
        if len(parts) > 1:
            rows = self.graph.op("Concat", *parts, attributes={"axis": 1})
        found = self.graph.op("TreeEnsemble", rows, attributes=writer.attributes(), domain=ML)
        return found.squeeze(1)

    def _member(self, column: int, subset: int) -> Tensor:
        """1 for rows whose category is in a set, else 0."""
        size = len(self.parts.columns[column].categories or ())
        inside = np.zeros(size + 1)
        inside[[1 + code for code in self.parts.trees.sets[subset]]] = 1.0
        return self.graph.gather(inside, self.codes[column])


#: how truth values are written, beside the numbers that they equal
TRUTH = {0: ("False", "false", "FALSE"), 1: ("True", "true", "TRUE")}


def _spellings(categories: tuple[Any, ...]) -> dict[str, int]:
    """The words that the model takes for the categories, and their codes from 1 on.

    Truth values and numbers come in all their usual spellings.

    >>> list(_spellings((False, True)))
    ['False', 'True', 'false', 'FALSE', '0', '0.0', 'true', 'TRUE', '1', '1.0']
    """
    found = {word: code for code, word in enumerate(_spelled(categories), start=1)}
    for code, category in enumerate(categories, start=1):
        if not isinstance(category, str) and category == (whole := int(category)):
            for word in (*TRUTH.get(whole, ()), str(whole), f"{whole}.0"):
                found.setdefault(word, code)
    return found


def _spelled(categories: tuple[Any, ...]) -> list[str]:
    """Categories as strings; whole numbers without a point."""
    whole = (int(c) if isinstance(c, float) and c.is_integer() else c for c in categories)
    words = [str(category) for category in whole]
    if len(set(words)) < len(words):
        alike = [c for c, word in zip(categories, words, strict=True) if words.count(word) > 1]
        raise InputError(
            "an ONNX model takes categories as strings, but two of this calibrator's are spelled "
            f"alike: {alike[:4]}. Convert them to strings before the fit."
        )
    return words


class _Ensemble:
    """The trees of a round in the words of TreeEnsemble."""

    def __init__(self, parts: TreeParts, first: int, last: int, place: dict[int, int]) -> None:
        self.trees, self.place = parts.trees, place
        self.logit = len(parts.columns)
        self.sets: list[tuple[int, int]] = []
        self.splits: list[tuple[float, ...]] = []  # in the order of `SPLIT`
        self.weights: list[float] = []
        self.roots = [self._as_split(int(root)) for root in self.trees.roots[first:last]]

    def _as_split(self, node: int) -> int:
        """The place of a split; for a leaf, of a split whose ways both lead to it."""
        if node >= 0:
            return self._split(node)
        self.splits.append((self._z, 0.0, 0, self._leaf(node), 1, self._leaf(node), 1))
        return len(self.splits) - 1

    @property
    def _z(self) -> int:
        return len(self.place)

    def _leaf(self, node: int) -> int:
        self.weights.append(float(self.trees.leaves[-1 - node]))
        return len(self.weights) - 1

    def _split(self, node: int) -> int:
        """The place of a split among all: before its left branch, and that before the right.

        ONNX Runtime before 1.30 gives wrong sums if a leaf is on the left and a split on the right.
        Such a leaf is written as a split whose ways both lead to it.
        """
        trees, place = self.trees, len(self.splits)
        self.splits.append(())  # until the places of its branches are known
        column, subset = int(trees.column[node]), int(trees.subset[node])
        ways = [int(trees.left[node]), int(trees.right[node])]
        if subset >= 0:  # 1 in the set, 0 outside
            self.sets.append((column, subset))
            looked, threshold, gone = self._z + len(self.sets), 0.5, 0
            ways.reverse()
        else:
            looked = self._z if column == self.logit else self.place[column]
            threshold, gone = float(trees.threshold[node]), int(trees.missing_left[node])
        ends: list[int] = []
        for child in ways:
            as_split = child >= 0 or (child == ways[0] and ways[1] >= 0)
            ends += [self._as_split(child), 0] if as_split else [self._leaf(child), 1]
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
