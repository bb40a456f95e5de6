"""Rounds of trees: LightGBM grows the trees of a round, which are read as arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.errors import InputError, import_extra
from calibrant.methods.features.rule import LARGEST_LEAF, STEEPEST, SmallTrees, sum_of_leaves
from calibrant.solvers.logistic import LogisticProblem, Prior

#: the extra that brings LightGBM
EXTRA = "features"
#: with fewer rows, several threads cost more time than they save
FEW_ROWS = 200_000
#: what is read of each split; the names but the last are fields of `SmallTrees`
SPLIT = [
    ("column", np.int32),
    ("threshold", np.float64),
    ("missing_left", np.bool_),
    ("subset", np.int32),
    ("left", np.int32),
    ("right", np.int32),
    ("gain", np.float64),
]


def lightgbm() -> Any:
    """The module. If it is not installed, the error names the extra to install."""
    return import_extra("lightgbm", extra=EXTRA)


@dataclass
class Growth:
    """Rounds of trees grown on some rows, and applied to the rows ``held``, if there are any.

    Parameters
    ----------
    matrix : array of shape (n, columns)
        Rows as trees see them: numbers and category codes, NaN where missing; the logit comes last.
    positive, weight : arrays of shape (n,)
        1.0 for the positive class, and weights.
    nominal : list of int
        The columns of category codes.
    trees : int
        How many trees a round has.
    options : dict
        LightGBM's parameters.
    held : array of shape (m, columns), optional
        Rows held out, as in ``matrix``.
    """

    matrix: Array
    positive: Array
    weight: Array
    nominal: list[int]
    trees: int
    options: dict[str, Any]
    held: Array | None = None
    rounds: list[SmallTrees] = field(default_factory=list, init=False)
    factors: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.gains = np.zeros(self.matrix.shape[1])

    def without(self, test: Index, train: Index) -> Growth:
        """The same on the rows ``train`` alone, as copies, with the rows ``test`` held out."""
        rest, held = (np.asfortranarray(self.matrix[rows]) for rows in (train, test))
        positive, weight = self.positive[train], self.weight[train]
        return replace(self, matrix=rest, positive=positive, weight=weight, held=held)

    def go_on(self) -> bool:
        """Grow one more round; False, with nothing changed, if no tree finds anything to split."""
        trees, gains = self.grow()
        if not len(trees):
            return False
        z = self.matrix[:, -1] + sum_of_leaves(trees.layout, self.matrix)
        factor = best_factor(z, self.positive, self.weight)
        self.matrix[:, -1] = factor * z
        if self.held is not None:
            total = sum_of_leaves(trees.layout, self.held)
            self.held[:, -1] = factor * (self.held[:, -1] + total)
        self.gains += gains
        self.rounds.append(trees)
        self.factors.append(factor)
        return True

    def grow(self) -> tuple[SmallTrees, Array]:
        """Trees that correct the logits in the last column, and what the splits on each column
        gain."""
        engine, n = lightgbm(), len(self.matrix)
        options = {"num_threads": 1 if n < FEW_ROWS else 0, **self.options}
        data = engine.Dataset(
            self.matrix,
            self.positive,
            weight=self.weight,
            init_score=self.matrix[:, -1].copy(),
            categorical_feature=self.nominal,
            params=options,
        )
        booster = engine.train(options, data, self.trees)
        return read_trees(booster.dump_model()["tree_info"], self.matrix.shape[1])


def best_factor(z: Array, positive: Array, weight: Array) -> float:
    """The factor on logits z of least log loss, from 0.1 to 10; a weak prior draws it to 1."""
    one = np.ones(1)
    n1 = weight * positive
    problem = LogisticProblem(lambda part: z[None, part], weight - n1, n1, Prior(one, one))
    factor = float(problem.least(one).theta[0])
    return min(max(factor, 1.0 / STEEPEST), STEEPEST)


def read_trees(described: Iterable[dict[str, Any]], columns: int) -> tuple[SmallTrees, Array]:
    """The trees of LightGBM's description, without those that are a single leaf, and what the
    splits on each column gain."""
    splits: list[tuple[Any, ...]] = []
    leaves: list[float] = []
    sets: list[tuple[int, ...]] = []

    def read(node: dict[str, Any]) -> int:
        """The place of a node: a split, or −1 − i for the leaf i."""
        if "split_feature" not in node:
            value = float(node["leaf_value"])
            if not abs(value) <= LARGEST_LEAF:
                raise InputError(
                    f"the trees must change logits by at most {LARGEST_LEAF:g} each, but one "
                    f"changes them by {value:g}. Use a smaller learning_rate or a larger ridge."
                )
            leaves.append(value)
            return -len(leaves)
        place = len(splits)
        splits.append(())  # parents come before their children
        how = (0.0, False, len(sets))
        if node["decision_type"] == "==":
            sets.append(tuple(int(code) for code in str(node["threshold"]).split("||")))
        else:
            how = (float(node["threshold"]), _missing_left(node), -1)
        sides = read(node["left_child"]), read(node["right_child"])
        splits[place] = (node["split_feature"], *how, *sides, node["split_gain"])
        return place

    roots = []
    for tree in described:
        root = read(tree["tree_structure"])
        if root >= 0:
            roots.append(root)
        else:
            leaves.pop()
    table = np.array(splits, dtype=SPLIT)
    gains = np.zeros(columns)
    np.add.at(gains, table["column"], table["gain"])
    fields: dict[str, Any] = {name: table[name] for name, _ in SPLIT[:-1]}
    fields |= {"leaves": np.array(leaves, dtype=float), "roots": np.array(roots, dtype=np.int32)}
    return SmallTrees(sets=tuple(sets), **fields), gains


def _missing_left(node: dict[str, Any]) -> bool:
    """Whether missing numbers go left: as learnt, or with most rows if none was missing."""
    if node["missing_type"] == "NaN":
        return bool(node["default_left"])
    return _rows(node["left_child"]) >= _rows(node["right_child"])


def _rows(node: dict[str, Any]) -> int:
    return int(node.get("internal_count", node.get("leaf_count", 0)))
