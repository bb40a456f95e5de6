"""C4.5 (release 8, as WEKA's J48 has it): splits by gain ratio, pruned by expected errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

__all__ = ["C45", "extra_errors"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

#: J48's confidence: errors are taken at the upper end of a one-sided interval of 75 %
CONFIDENCE = 0.25
#: a subtree must save at least so many errors to stay
WORTH = 0.1
#: least number of rows in two of the branches
LEAST = 2
#: the least number of rows on a side of a cut is at most this
ENOUGH = 25
#: gains may be so far below the average and still be among the good ones
NEAR = 1e-3


def extra_errors(n: float, errors: float) -> float:
    """What C4.5 adds to the errors of a leaf of n rows: those that it did not see, at 75 %.

    For no errors exactly (a binomial that gives none with probability 0.25), from one on by the
    normal approximation with a correction of a half, between them linear.
    """
    if errors < 1.0:
        none = n * (1.0 - CONFIDENCE ** (1.0 / n))
        return none if errors == 0.0 else none + errors * (extra_errors(n, 1.0) - none)
    if errors + 0.5 >= n:
        return max(n - errors, 0.0)
    z = float(norm.isf(CONFIDENCE))
    f = (errors + 0.5) / n
    middle = f + z * z / (2 * n)
    half = z * np.sqrt(f * (1.0 - f) / n + z * z / (4 * n * n))
    return float((middle + half) / (1.0 + z * z / n) * n - errors)


class Split(NamedTuple):
    """A split of a node's rows: information gained and spent, in bits per row."""

    gain: float
    spent: float
    column: int
    #: of a number; None if there is a branch for each word
    cut: float | None

    @property
    def ratio(self) -> float:
        return self.gain / self.spent


@dataclass
class Node:
    """The rows of a node by class, and what becomes of them."""

    counts: Array
    split: Split | None = None
    #: by word, or 0 (at most the cut) and 1
    branches: dict[int, Node] = field(default_factory=dict)

    @property
    def errors(self) -> float:
        """Errors to be expected of a leaf."""
        n = float(self.counts.sum())
        wrong = n - float(self.counts.max())
        return wrong + extra_errors(n, wrong)

    def leaves(self) -> int:
        return sum(node.leaves() for node in self.branches.values()) if self.branches else 1


class C45:
    """A decision tree on numbers and on words given as whole numbers; no gaps.

    As J48 by default, but for two things: no subtree is raised to the place of its parent, and
    gaps are to be filled before (J48 sends such rows down all branches, by shares).

    O(n·A·k·depth) for n rows, A columns and k classes.
    """

    def __init__(self, nominal: tuple[int, ...] = ()) -> None:
        self.nominal = nominal

    def fit(self, X: Array, y: Labels) -> C45:
        self.classes = int(y.max()) + 1
        self.numbers = np.setdiff1d(np.arange(X.shape[1]), self.nominal)
        self.root = self._grow(X, y)
        _prune(self.root)
        return self

    def predict_proba(self, X: Array) -> Array:
        """The class frequencies of the leaf that a row ends in; of its parent, if that is empty."""
        found = np.empty((len(X), self.classes))
        open_ = [(self.root, np.arange(len(X)))]
        while open_:
            node, rows = open_.pop()
            found[rows] = node.counts / node.counts.sum()
            if node.split is not None:
                way = _ways(X[rows], node.split)
                open_ += [(branch, rows[way == i]) for i, branch in node.branches.items()]
        return found

    def _grow(self, X: Array, y: Labels) -> Node:
        counts = np.bincount(y, minlength=self.classes).astype(np.float64)
        node = Node(counts)
        if counts.max() == len(y) or len(y) < 2 * LEAST:
            return node
        split = _choose([*self._cuts(X, y, counts), *self._words(X, y, counts)])
        if split is not None:
            node.split = split
            way = _ways(X, split)
            node.branches = {int(i): self._grow(X[way == i], y[way == i]) for i in np.unique(way)}
        return node

    def _words(self, X: Array, y: Labels, counts: Array) -> list[Split]:
        """A branch for each word, where at least two of them have enough rows."""
        found = []
        n = len(y)
        for column in self.nominal:
            words = X[:, column].astype(np.intp)
            cells = np.bincount(
                words * self.classes + y, minlength=(words.max() + 1) * self.classes
            )
            table = cells.reshape(-1, self.classes).astype(np.float64)
            sizes = table.sum(axis=1)
            if (sizes >= LEAST).sum() < 2:
                continue
            spent = (_bits(np.array(float(n))) - _bits(sizes).sum()) / n
            left = _bits(sizes).sum() - _bits(table).sum()
            gain = (_bits(np.array(float(n))) - _bits(counts).sum() - left) / n
            found.append(Split(float(gain), float(spent), column, None))
        return found

    def _cuts(self, X: Array, y: Labels, counts: Array) -> list[Split]:
        """The best cut of each number; its gain less the bits that tell which of them it is."""
        n = len(y)
        least = int(np.ceil(min(max(0.1 * n / self.classes, LEAST), ENOUGH)))
        if not len(self.numbers) or n < 2 * least:
            return []
        values = X[:, self.numbers]
        order = np.argsort(values, axis=0, kind="stable")
        values = np.take_along_axis(values, order, axis=0)
        low = (y[order][:, :, None] == np.arange(self.classes)).cumsum(axis=0)[
            least - 1 : n - least
        ]
        low = low.astype(np.float64)
        size = np.arange(least, n - least + 1, dtype=np.float64)[:, None]
        apart = values[least : n - least + 1] > values[least - 1 : n - least] + 1e-12
        inside = _bits(size) - _bits(low).sum(axis=2)
        inside += _bits(n - size) - _bits(counts - low).sum(axis=2)
        whole = _bits(np.array(float(n)))
        gain = np.where(apart, (whole - _bits(counts).sum() - inside) / n, -np.inf)
        best = gain.argmax(axis=0)
        found = []
        for j, place in enumerate(best):
            cuts = int(apart[:, j].sum())
            if not cuts:
                continue
            corrected = float(gain[place, j]) - np.log2(cuts) / n
            sides = float(size[place, 0])
            spent = (whole - _bits(np.array([sides, n - sides])).sum()) / n
            row = least - 1 + place
            cut = (values[row, j] + values[row + 1, j]) / 2
            found.append(Split(corrected, float(spent), int(self.numbers[j]), float(cut)))
        return found


def _bits(counts: Array) -> Array:
    """c·log₂ c, 0 for none."""
    found: Array = counts * np.log2(np.maximum(counts, 1.0))
    return found


def _ways(X: Array, split: Split) -> Labels:
    """Which branch each row takes."""
    column = X[:, split.column]
    return column.astype(np.intp) if split.cut is None else (column > split.cut).astype(np.intp)


def _choose(splits: list[Split]) -> Split | None:
    """The best gain ratio among the splits whose gain is not below the average."""
    useful = [split for split in splits if split.gain > 1e-9 and split.spent > 0]
    if not useful:
        return None
    average = sum(split.gain for split in useful) / len(useful)
    return max((s for s in useful if s.gain >= average - NEAR), key=lambda split: split.ratio)


def _prune(node: Node) -> float:
    """Make leaves of subtrees that do not pay; the errors to be expected of what is left."""
    if not node.branches:
        return node.errors
    kept = sum(_prune(branch) for branch in node.branches.values())
    if node.errors <= kept + WORTH:
        node.split, node.branches = None, {}
        return node.errors
    return kept
