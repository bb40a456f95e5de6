"""scikit-learn's decision trees for two classes, node for node the same, several times as fast.

Boosting fits thousands of trees to the same rows with other weights. scikit-learn sorts the rows
of a node anew for each column. Here the columns are looked at once (`Columns`): those of many
values keep their order, those of few are counted value by value, and those of 0 and 1 are counted
from the ones alone.

The tree is the same, for two reasons. `calibrant.boosting` rounds the weights of the rows so that
their sums are exact in any order. And the order in which columns are tried, which decides between
equal splits, is drawn as scikit-learn draws it. A test compares whole trees. Versions of
scikit-learn may differ in this: those that were not compared grow their own trees.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import sklearn
from numba import njit
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree._tree import Tree
from sklearn.utils import check_random_state

__all__ = ["COMPARED", "Columns", "ExactTree", "exact_trees"]

Array = NDArray[np.float64]

#: the versions of scikit-learn whose trees these are
COMPARED = "1.9."
#: columns with more distinct values than this keep the order of their rows
FEW = 64
TWO, MANY = 1, 2
#: nodes of up to this many rows sort them, others count them value by value
SMALL = 16
#: values that differ by no more count as equal
SAME = np.float32(1e-7)
EPSILON = np.finfo(np.float64).eps
RAND_MAX = 2**31 - 1
#: the entropy of these many shares from 0 to 1, and one more
CHORDS = 2048
_shares = np.arange(CHORDS + 1) / CHORDS
ENTROPIES = np.append(
    -sum(
        np.where(p > 0.0, p * np.log2(np.maximum(p, 1e-9)), 0.0) for p in (_shares, 1.0 - _shares)
    ),
    0.0,
)
NODES = np.dtype(
    {
        "names": ["left_child", "right_child", "feature", "threshold", "impurity",
                  "n_node_samples", "weighted_n_node_samples", "missing_go_to_left"],
        "formats": ["<i8", "<i8", "<i8", "<f8", "<f8", "<i8", "<f8", "u1"],
        "offsets": [0, 8, 16, 24, 32, 40, 48, 56],
        "itemsize": 64,
    }
)  # fmt: skip


class Columns(NamedTuple):
    """What is known of the rows whatever their weights.

    ``codes`` has the place of each value among the distinct ones of its column, ``values`` the
    distinct ones (column ``f`` from ``starts[f]``). ``kind`` is `TWO`, `MANY` or neither, by the
    number of distinct values. ``order`` has the rows of each column of many values in the order of
    its values, in the line ``line[f]``. ``ones`` (row ``i`` from ``ones_from[i]``) has the columns
    of two values in which a row has the larger one.
    """

    codes: NDArray[np.integer[Any]]
    values: NDArray[np.float32]
    starts: NDArray[np.int64]
    kind: NDArray[np.int8]
    order: NDArray[np.integer[Any]]
    line: NDArray[np.int64]
    ones: NDArray[np.int32]
    ones_from: NDArray[np.int64]

    @classmethod
    def of(cls, X: NDArray[np.float32]) -> Columns:
        small = np.int16 if len(X) < 2**15 else np.int32  # what is small stays near
        found = [np.unique(column, return_inverse=True) for column in X.T]
        codes = np.array([code for _, code in found], dtype=small)
        sizes = np.array([len(values) for values, _ in found])
        kind = np.where(sizes <= 2, TWO, np.where(sizes <= FEW, 0, MANY)).astype(np.int8)
        many = kind == MANY
        order = np.argsort(codes[many], axis=1, kind="stable").astype(small)
        rows, columns = np.nonzero((codes.T == 1) & (kind == TWO))
        return cls(
            codes,
            np.concatenate([values for values, _ in found]).astype(np.float32),
            np.concatenate(([0], np.cumsum(sizes))),
            kind,
            order.reshape(int(many.sum()), len(X)),
            np.cumsum(many) - 1,
            columns.astype(np.int32),
            np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(X))))),
        )


class Weighed(NamedTuple):
    """The rows of the nodes, side by side, and the weight of each row, negative for class 0."""

    place: NDArray[np.integer[Any]]
    signed: Array


class Sums(NamedTuple):
    """Rows, weight and positive weight, column by column."""

    n: NDArray[np.int64]
    weight: Array
    positive: Array


class Runs(NamedTuple):
    """A column of a node: its values in order, and rows and weights of each."""

    code: NDArray[np.int64]
    n: NDArray[np.int64]
    weight: Array
    positive: Array


class Tried(NamedTuple):
    """The columns in the order of the draws, and those found to be constant."""

    features: NDArray[np.int64]
    constants: NDArray[np.int64]


class Node(NamedTuple):
    """The places of a node's rows, its columns known to be constant, and its weight."""

    start: int
    end: int
    constants: int
    weight: float
    positive: float


class Split(NamedTuple):
    """A split: what it gains, the last value on the left, and what is on the left."""

    gain: float
    feature: int
    code: int
    threshold: float
    n: int
    weight: float
    positive: float


class Rules(NamedTuple):
    """How a tree grows."""

    entropy: bool
    least: int
    deepest: int


class ExactTree(DecisionTreeClassifier):  # type: ignore[misc]
    """A `DecisionTreeClassifier` of two classes that grows as fast as the columns allow."""

    _known: tuple[Any, Columns] | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> ExactTree:
        self.n_features_in_ = self.max_features_ = X.shape[1]
        self.n_outputs_ = 1
        self.classes_ = np.unique(y)
        self.n_classes_ = np.int64(2)
        if len(self.classes_) != 2 or check_input or sample_weight is None:
            raise ValueError("rows must be checked and weighted, and labels be of two classes.")
        columns = self._columns(X)
        deepest = np.iinfo(np.int32).max if self.max_depth is None else self.max_depth
        grown = _grow(
            columns._replace(order=columns.order.copy()),  # which is parted on the way
            np.where(y == self.classes_[1], sample_weight, -sample_weight),
            Rules(self.criterion == "entropy", self.min_samples_leaf, deepest),
            np.uint32(check_random_state(self.random_state).randint(0, RAND_MAX)),
        )
        self.tree_ = _as_tree(X.shape[1], *grown)
        self._prune_tree()
        return self

    @classmethod
    def _columns(cls, X: Any) -> Columns:
        """Those of the rows that came last are kept: the next tree is fitted to the same."""
        if cls._known is None or cls._known[0] is not X:
            cls._known = (X, Columns.of(X))
        return cls._known[1]


@contextmanager
def exact_trees() -> Iterator[None]:
    """Inside, `calibrant.boosting` grows its named trees by `ExactTree`."""
    if not sklearn.__version__.startswith(COMPARED):
        yield
        return
    with patch("calibrant.methods.boosting.DecisionTreeClassifier", ExactTree):
        yield


def _as_tree(columns: int, count: int, depth: int, links: Any, numbers: Any, positive: Any) -> Tree:
    """The nodes as scikit-learn holds them."""
    nodes = np.zeros(count, dtype=NODES)
    for name, column in zip(
        ("left_child", "right_child", "feature", "n_node_samples", "missing_go_to_left"),
        links[:, :count],
        strict=True,
    ):
        nodes[name] = column
    nodes["threshold"], nodes["impurity"], nodes["weighted_n_node_samples"] = numbers[:, :count]
    weight = numbers[2, :count]
    values = np.stack(((weight - positive[:count]) / weight, positive[:count] / weight), axis=1)
    tree = Tree(columns, np.array([2], dtype=np.intp), 1)
    tree.__setstate__(
        {"max_depth": depth, "node_count": count, "nodes": nodes, "values": values[:, None, :]}
    )
    return tree


# --- one split ----------------------------------------------------------------------------------


@njit(cache=True, forceinline=True)
def _impurity(positive, weight, entropy):  # type: ignore[no-untyped-def]
    """Of a node: its entropy in bits, or its Gini index."""
    negative = weight - positive
    if not entropy:
        return 1.0 - (negative * negative + positive * positive) / (weight * weight)
    found = 0.0
    if negative > 0.0:
        share = negative / weight
        found -= share * (math.log(share) / math.log(2.0))
    if positive > 0.0:
        share = positive / weight
        found -= share * (math.log(share) / math.log(2.0))
    return found


@njit(cache=True, forceinline=True)
def _gain(positive, weight, node, entropy):  # type: ignore[no-untyped-def]
    """What splits are compared by: minus the impurity of both sides, weighted."""
    rest = node.weight - weight
    left = _impurity(positive, weight, entropy)
    right = _impurity(node.positive - positive, rest, entropy)
    return -rest * right - weight * left


@njit(cache=True, forceinline=True)
def _bound(positive, weight, node):  # type: ignore[no-untyped-def]
    """At least the gain by entropy, without a logarithm: entropy is concave, above its chords."""
    rest = node.weight - weight
    left = CHORDS * (positive / weight)
    right = CHORDS * ((node.positive - positive) / rest)
    i, j = int(left), int(right)
    left = ENTROPIES[i] + (left - i) * (ENTROPIES[i + 1] - ENTROPIES[i])
    right = ENTROPIES[j] + (right - j) * (ENTROPIES[j + 1] - ENTROPIES[j])
    return 1e-9 * node.weight - rest * right - weight * left


@njit(cache=True, forceinline=True)
def _best_of_column(f, columns, runs, length, node, rules, best):  # type: ignore[no-untyped-def]
    """The best split so far, when those of a column, given as runs of equal values, are tried."""
    found, n, weight, positive = best, 0, 0.0, 0.0
    for j in range(length - 1):
        n += runs.n[j]
        weight += runs.weight[j]
        positive += runs.positive[j]
        if n < rules.least or node.end - node.start - n < rules.least:
            continue
        low = columns.values[columns.starts[f] + runs.code[j]]
        high = columns.values[columns.starts[f] + runs.code[j + 1]]
        if high <= low + SAME or (rules.entropy and _bound(positive, weight, node) <= found.gain):
            continue
        gain = _gain(positive, weight, node, rules.entropy)
        if gain > found.gain:
            threshold = low / 2.0 + high / 2.0
            found = Split(gain, f, runs.code[j], threshold, n, weight, positive)
    return found


# --- the values of a column in a node, as runs of rows with equal values, in their order ----------


@njit(cache=True, forceinline=True)
def _runs_of_two(f, node, ones, runs):  # type: ignore[no-untyped-def]
    """Of a column of two values, from the sums over the rows that have the larger one."""
    n = node.end - node.start
    if ones.n[f] in {0, n}:
        runs.code[0] = 0  # the other one would do as well: the column is constant here
        return 1
    runs.code[0], runs.n[0] = 0, n - ones.n[f]
    runs.weight[0] = node.weight - ones.weight[f]
    runs.positive[0] = node.positive - ones.positive[f]
    runs.code[1] = 1  # the sums of the last run are not asked for
    return 2


@njit(cache=True, forceinline=True)
def _runs_of_many(f, columns, node, rows, runs):  # type: ignore[no-untyped-def]
    """Of a column whose rows are kept in order."""
    last, before, line = -1, -1, columns.line[f]
    for k in range(node.start, node.end):
        row = columns.order[line, k]
        code = columns.codes[f, row]
        if code != before:
            before = code
            last += 1
            runs.code[last], runs.n[last] = before, 0
            runs.weight[last] = runs.positive[last] = 0.0
        runs.n[last] += 1
        runs.weight[last] += abs(rows.signed[row])
        runs.positive[last] += max(rows.signed[row], 0.0)
    return last + 1


@njit(cache=True, forceinline=True)
def _runs_of_small(f, columns, node, rows, runs):  # type: ignore[no-untyped-def]
    """Of a node of few rows: each is a run, put in its place. Runs may have equal values."""
    for k in range(node.start, node.end):
        row, j = rows.place[k], k - node.start
        code = columns.codes[f, row]
        while j > 0 and runs.code[j - 1] > code:
            runs.code[j] = runs.code[j - 1]
            runs.weight[j], runs.positive[j] = runs.weight[j - 1], runs.positive[j - 1]
            j -= 1
        runs.code[j], runs.n[k - node.start] = code, 1
        runs.weight[j], runs.positive[j] = abs(rows.signed[row]), max(rows.signed[row], 0.0)
    return node.end - node.start


@njit(cache=True, forceinline=True)
def _runs_of_few(f, columns, node, rows, runs):  # type: ignore[no-untyped-def]
    """Of a column of few values: each is counted."""
    size = columns.starts[f + 1] - columns.starts[f]
    for j in range(size):
        runs.n[j] = 0
        runs.weight[j] = runs.positive[j] = 0.0
    for k in range(node.start, node.end):
        row = rows.place[k]
        code = columns.codes[f, row]
        runs.n[code] += 1
        runs.weight[code] += abs(rows.signed[row])
        runs.positive[code] += max(rows.signed[row], 0.0)
    length = 0
    for j in range(size):
        if runs.n[j] > 0:
            runs.code[length], runs.n[length] = j, runs.n[j]
            runs.weight[length], runs.positive[length] = runs.weight[j], runs.positive[j]
            length += 1
    return length


@njit(cache=True, forceinline=True)
def _runs(f, columns, node, rows, ones, runs):  # type: ignore[no-untyped-def]
    if columns.kind[f] == TWO:
        return _runs_of_two(f, node, ones, runs)
    if columns.kind[f] == MANY:
        return _runs_of_many(f, columns, node, rows, runs)
    if node.end - node.start <= SMALL:
        return _runs_of_small(f, columns, node, rows, runs)
    return _runs_of_few(f, columns, node, rows, runs)


# --- the columns of a node ------------------------------------------------------------------------


@njit(cache=True, forceinline=True)
def _drawn(state, high):  # type: ignore[no-untyped-def]
    """The next state of the generator, and its number below ``high``."""
    if state == 0:
        state = np.uint32(1)
    state ^= np.uint32(state << np.uint32(13))
    state ^= np.uint32(state >> np.uint32(17))
    state ^= np.uint32(state << np.uint32(5))
    return state, np.int64(state % np.uint32(2147483648)) % high


@njit(cache=True, forceinline=True)
def _count_ones(columns, node, rows, ones):  # type: ignore[no-untyped-def]
    """Rows and weights of the larger value of each column of two."""
    ones.n[:] = 0
    ones.weight[:] = 0.0
    ones.positive[:] = 0.0
    for k in range(node.start, node.end):
        row = rows.place[k]
        weight, positive = abs(rows.signed[row]), max(rows.signed[row], 0.0)
        for j in range(columns.ones_from[row], columns.ones_from[row + 1]):
            f = columns.ones[j]
            ones.n[f] += 1
            ones.weight[f] += weight
            ones.positive[f] += positive


@njit(cache=True, forceinline=True)
def _best_split(columns, node, rows, ones, runs, tried, rules, state):  # type: ignore[no-untyped-def]
    """The best split of a node, how many columns are constant in it, and the generator's state.

    ``tried.features`` begins with the columns that are known to be constant. Those that are drawn
    go to its end, or behind the known ones if they turn out to be constant.
    """
    _count_ones(columns, node, rows, ones)
    best = Split(-np.inf, -1, -1, -2.0, 0, 0.0, 0.0)
    features, known = tried.features, node.constants
    untried, found, drawn = len(features), 0, 0
    while untried > known + found:
        state, at = _drawn(state, untried - found - drawn)
        at += drawn
        if at < known:
            features[drawn], features[at] = features[at], features[drawn]
            drawn += 1
            continue
        at += found
        f = features[at]
        length = _runs(f, columns, node, rows, ones, runs)
        low = columns.values[columns.starts[f] + runs.code[0]]
        if columns.values[columns.starts[f] + runs.code[length - 1]] <= low + SAME:
            features[at], features[known + found] = features[known + found], f
            found += 1
            continue
        untried -= 1
        features[at], features[untried] = features[untried], f
        best = _best_of_column(f, columns, runs, length, node, rules, best)
    features[:known] = tried.constants[:known]
    tried.constants[known : known + found] = features[known : known + found]
    return best, known + found, state


# --- the tree -------------------------------------------------------------------------------------


@njit(cache=True)
def _grow(columns, signed, rules, state):  # type: ignore[no-untyped-def]
    """The nodes of a tree, depth first: their number, its depth, links, numbers, positives."""
    d, n = columns.codes.shape
    rows = Weighed(np.arange(n).astype(columns.order.dtype), signed)
    order, goes_left, spare = columns.order, np.empty(n, np.int8), np.empty_like(rows.place)
    ones = Sums(np.zeros(d, np.int64), np.zeros(d), np.zeros(d))
    runs = Runs(np.empty(n + FEW, np.int64), np.empty(n + FEW, np.int64),
                np.empty(n + FEW), np.empty(n + FEW))  # fmt: skip
    tried = Tried(np.arange(d), np.empty(d, np.int64))
    links, numbers, node_positive = (
        np.empty((5, 2 * n), np.int64),
        np.empty((3, 2 * n)),
        np.empty(2 * n),
    )
    # start, end, depth, parent, whether a left child, constant columns; and the impurity
    stack, impurities = np.empty((2 * n, 6), np.int64), np.empty(2 * n)
    stack[0] = (0, n, 0, -1, 0, 0)
    stacked, count, deepest = 1, 0, 0
    total = np.abs(signed).sum()
    while stacked:
        stacked -= 1
        start, end, depth, parent, is_left, constants = stack[stacked]
        weight = positive = 0.0
        for k in range(start, end):
            weight += abs(signed[rows.place[k]])
            positive += max(signed[rows.place[k]], 0.0)
        node = Node(start, end, constants, weight, positive)
        impurity = impurities[stacked] if count else _impurity(positive, weight, rules.entropy)
        here, size = count, end - start
        count += 1
        if parent >= 0:
            links[1 - is_left, parent] = here
        links[:, here] = (-1, -1, -2, size, 0)
        numbers[:, here] = (-2.0, impurity, weight)
        node_positive[here] = positive
        deepest = max(deepest, depth)
        if depth >= rules.deepest or size < max(2, 2 * rules.least) or impurity <= EPSILON:
            continue

        best, constants, state = _best_split(columns, node, rows, ones, runs, tried, rules, state)
        if best.feature < 0:
            continue
        rest = weight - best.weight
        left = _impurity(best.positive, best.weight, rules.entropy)
        right = _impurity(positive - best.positive, rest, rules.entropy)
        gained = impurity - (rest / weight * right) - (best.weight / weight * left)
        if (weight / total) * gained + EPSILON < 0.0:
            continue
        links[2, here], links[4, here] = best.feature, best.n > size - best.n
        numbers[0, here] = best.threshold
        for k in range(start, end):
            row = rows.place[k]
            goes_left[row] = columns.codes[best.feature, row] <= best.code
        _part(rows.place, start, end, goes_left, spare)
        for j in range(len(order)):
            _part(order[j], start, end, goes_left, spare)
        middle = start + best.n
        stack[stacked] = (middle, end, depth + 1, here, 0, constants)
        stack[stacked + 1] = (start, middle, depth + 1, here, 1, constants)
        impurities[stacked], impurities[stacked + 1] = right, left
        stacked += 2
    return count, deepest, links, numbers, node_positive


@njit(cache=True)
def _part(line, start, end, goes_left, spare):  # type: ignore[no-untyped-def]
    """Bring the rows that go left before those that go right, each in their order."""
    at, kept = start, 0
    for k in range(start, end):
        row = line[k]
        line[at] = spare[kept] = row  # written twice, so that nothing is to be guessed
        at += goes_left[row]
        kept += 1 - goes_left[row]
    for k in range(kept):
        line[at + k] = spare[k]
