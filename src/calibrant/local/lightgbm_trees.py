"""Trees that LightGBM grows, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.arrays import Array
from calibrant.errors import InputError, import_extra
from calibrant.local.trees import LARGEST_LEAF, SmallTrees

#: the extra that brings LightGBM
EXTRA = "features"
#: with fewer rows, several threads cost more time than they save
FEW_ROWS = 200_000


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


class GrownTrees(NamedTuple):
    """Trees, and the sum of what the splits on each column gained in the fit."""

    trees: SmallTrees
    gains: Array


def grow(
    matrix: Array, positive: Array, weight: Array, nominal: list[int], options: TreeOptions
) -> GrownTrees:
    """Trees that correct the logits in the last column of the matrix.

    ``nominal`` are the columns of category codes; NaN is missing everywhere.
    """
    engine = lightgbm()
    told = options.for_lightgbm(len(matrix))
    data = engine.Dataset(
        matrix,
        positive,
        weight=weight,
        init_score=matrix[:, -1].copy(),
        categorical_feature=nominal,
        params=told,
    )
    booster = engine.train(told, data, options.trees)
    dump = booster.dump_model()["tree_info"]
    gains = np.zeros(matrix.shape[1])
    found = []
    for tree in dump:
        one = _Reader()
        root = one.read(tree["tree_structure"])
        np.add.at(gains, one.column, one.gain)
        found.append(one.trees(root))
    kept = [one for one in found if len(one.column)]
    return GrownTrees(SmallTrees.joined(kept), gains)


class _Reader:
    """One tree of LightGBM's description, read from the root down."""

    def __init__(self) -> None:
        self.column: list[int] = []
        self.threshold: list[float] = []
        self.missing_left: list[bool] = []
        self.subset: list[int] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.gain: list[float] = []
        self.leaves: list[float] = []
        self.sets: list[tuple[int, ...]] = []

    def read(self, node: dict[str, Any]) -> int:
        """The place of a node: a split, or −1 − i for the leaf i."""
        if "split_feature" not in node:
            self.leaves.append(_leaf(node["leaf_value"]))
            return -len(self.leaves)
        place = len(self.column)
        nominal = node["decision_type"] == "=="
        self.column.append(node["split_feature"])
        self.gain.append(node["split_gain"])
        self.subset.append(len(self.sets) if nominal else -1)
        self.threshold.append(0.0 if nominal else float(node["threshold"]))
        if nominal:
            self.sets.append(tuple(int(code) for code in str(node["threshold"]).split("||")))
        self.missing_left.append(not nominal and _missing_left(node))
        self.left.append(0)
        self.right.append(0)
        self.left[place] = self.read(node["left_child"])
        self.right[place] = self.read(node["right_child"])
        return place

    def trees(self, root: int) -> SmallTrees:
        def whole(values: list[int]) -> NDArray[np.int32]:
            return np.array(values, dtype=np.int32)

        return SmallTrees(
            whole(self.column),
            np.array(self.threshold, dtype=float),
            np.array(self.missing_left, dtype=bool),
            whole(self.subset),
            whole(self.left),
            whole(self.right),
            np.array(self.leaves, dtype=float),
            whole([root]),
            tuple(self.sets),
        )


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
