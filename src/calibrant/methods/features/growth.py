"""Rounds of trees: LightGBM grows the trees of a round, which are read as arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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


@dataclass(frozen=True)
class TreeOptions:
    """How the trees of a round are grown."""

    trees: int
    leaves: int
    learning_rate: float
    min_rows: int
    ridge: float
    seed: int

    def for_lightgbm(self, rows: int) -> dict[str, Any]:
        """The same as LightGBM's parameters, chosen so that equal data give equal trees."""
        return {
            "num_threads": 1 if rows < FEW_ROWS else 0,
            "objective": "binary",
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": self.min_rows,
            "lambda_l2": self.ridge,
            "min_gain_to_split": 0.15,
            "max_bin": 63,
            "bin_construct_sample_cnt": 50_000,
            "deterministic": True,
            "force_row_wise": True,
            "seed": self.seed,
            "verbosity": -1,
        }


@dataclass(frozen=True)
class TrainingMatrix:
    """Rows as trees see them (the logit last), 1.0 for the positive class, and weights.

    ``nominal`` are the columns of category codes; NaN is missing everywhere.
    """

    matrix: Array
    positive: Array
    weight: Array
    nominal: list[int]

    def take(self, rows: Index) -> TrainingMatrix:
        """Some of the rows, as a copy."""
        return TrainingMatrix(
            np.asfortranarray(self.matrix[rows]),
            self.positive[rows],
            self.weight[rows],
            self.nominal,
        )


class GrownTrees(NamedTuple):
    """Trees, and the sum of what the splits on each column gained in the fit."""

    trees: SmallTrees
    gains: Array


@dataclass
class Growth:
    """Rounds of trees grown on some rows, and applied to the rows ``held``, if there are any."""

    rows: TrainingMatrix
    options: TreeOptions
    held: Array | None = None
    rounds: list[SmallTrees] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gains = np.zeros(self.rows.matrix.shape[1])

    def go_on(self) -> bool:
        """Grow one more round; False, with nothing changed, if no tree finds anything to split."""
        rows = self.rows
        grown = grow(rows, self.options)
        if not len(grown.trees):
            return False
        z = rows.matrix[:, -1] + sum_of_leaves(grown.trees.layout, rows.matrix)
        factor = best_factor(z, rows.positive, rows.weight)
        rows.matrix[:, -1] = factor * z
        if self.held is not None:
            total = sum_of_leaves(grown.trees.layout, self.held)
            self.held[:, -1] = factor * (self.held[:, -1] + total)
        self.gains += grown.gains
        self.rounds.append(grown.trees)
        self.factors.append(factor)
        return True


def best_factor(z: Array, positive: Array, weight: Array) -> float:
    """The factor on logits z of least log loss, from 0.1 to 10; a weak prior draws it to 1."""
    one = np.ones(1)
    n1 = weight * positive
    problem = LogisticProblem(lambda part: z[None, part], weight - n1, n1, Prior(one, one))
    found = float(problem.least(one).theta[0])
    return min(max(found, 1.0 / STEEPEST), STEEPEST)


def grow(rows: TrainingMatrix, options: TreeOptions) -> GrownTrees:
    """Trees that correct the logits in the last column of the matrix."""
    engine = lightgbm()
    matrix = rows.matrix
    told = options.for_lightgbm(len(matrix))
    data = engine.Dataset(
        matrix,
        rows.positive,
        weight=rows.weight,
        init_score=matrix[:, -1].copy(),
        categorical_feature=rows.nominal,
        params=told,
    )
    booster = engine.train(told, data, options.trees)
    return read_trees(booster.dump_model()["tree_info"], matrix.shape[1])


def read_trees(described: Iterable[dict[str, Any]], columns: int) -> GrownTrees:
    """The trees of LightGBM's description, without those that are a single leaf."""
    splits: list[tuple[Any, ...]] = []
    leaves: list[float] = []
    sets: list[tuple[int, ...]] = []

    def read(node: dict[str, Any]) -> int:
        """The place of a node: a split, or −1 − i for the leaf i."""
        if "split_feature" not in node:
            leaves.append(_leaf(node["leaf_value"]))
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
    found = np.array(splits, dtype=SPLIT)
    gains = np.zeros(columns)
    np.add.at(gains, found["column"], found["gain"])
    fields: dict[str, Any] = {name: found[name] for name, _ in SPLIT[:-1]}
    fields |= {"leaves": np.array(leaves, dtype=float), "roots": np.array(roots, dtype=np.int32)}
    return GrownTrees(SmallTrees(sets=tuple(sets), **fields), gains)


def _missing_left(node: dict[str, Any]) -> bool:
    """Whether missing numbers go left: as learnt, or with most rows if none was missing."""
    if node["missing_type"] == "NaN":
        return bool(node["default_left"])
    return _rows(node["left_child"]) >= _rows(node["right_child"])


def _rows(node: dict[str, Any]) -> int:
    return int(node.get("internal_count", node.get("leaf_count", 0)))


def _leaf(value: float) -> float:
    if not abs(value) <= LARGEST_LEAF:
        raise InputError(
            f"the trees must change logits by at most {LARGEST_LEAF:g} each, but one changes them "
            f"by {value:g}. Use a smaller learning_rate or a larger ridge."
        )
    return float(value)
