"""Trees on the columns of a row as an ONNX model: a TreeEnsemble for each round."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from calibrant.errors import InputError, ParameterError
from calibrant.export.onnx.formulas import logit_of, sigmoid_of
from calibrant.export.onnx.graph import Graph, Tensor
from calibrant.export.onnx.model import assembled, facts_of, guarded
from calibrant.export.onnx.printer import ML, ONNX, OnnxPrinter, encoded
from calibrant.export.onnx.protos import tensor_info
from calibrant.export.tree_parts import TreeParts

#: TreeEnsemble came with ai.onnx.ml 5, and that with these versions
OPSET, ML_OPSET, IR = 21, 5, 10
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
    graph = Graph(dtype, OPSET)
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
    return assembled(graph, inputs, output, {"": OPSET, ML: ML_OPSET}, IR, facts)


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
