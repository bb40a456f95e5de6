"""Trees on the columns of a row, as exports take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.estimators.fitted import refuse_models
from calibrant.maps import Map

__all__ = ["ExportedColumn", "TreeArrays", "TreeParts", "refuse_trees", "tree_parts_of"]

Array = NDArray[np.float64]
Index = NDArray[np.int32]


class ExportedColumn(NamedTuple):
    """A column that trees look at: its name (or place), and its categories, if it has any."""

    name: str | int
    categories: tuple[Any, ...] | None


class TreeArrays(Protocol):
    """Trees as `calibrant.local.trees.SmallTrees` has them."""

    column: Index
    threshold: Array
    missing_left: NDArray[np.bool_]
    subset: Index
    left: Index
    right: Index
    leaves: Array
    roots: Index
    sets: tuple[tuple[int, ...], ...]


class TreeParts(NamedTuple):
    """A map of the score, and rounds of trees: z ← factor · (z + Σ trees), from its logit.

    The trees count ``columns`` from 0; the column after the last is z.
    """

    start: Map
    columns: tuple[ExportedColumn, ...]
    trees: Any
    sizes: tuple[int, ...]
    factors: tuple[float, ...]
    facts: Any

    @property
    def ends(self) -> list[tuple[int, int, float]]:
        """First and last tree of each round, and its factor."""
        lasts = np.cumsum(self.sizes).tolist()
        firsts = [0, *lasts[:-1]]
        return list(zip(firsts, lasts, self.factors, strict=True))


def tree_parts_of(calibrator: Any) -> TreeParts | None:
    """The trees of a calibrator that has some; None for all others."""
    if isinstance(calibrator, (Map, type)) or not hasattr(calibrator, "to_fitted"):
        return None
    refuse_models(calibrator)
    fitted = calibrator.to_fitted()
    parts: TreeParts | None = getattr(fitted, "tree_parts", None)
    return parts


def refuse_trees(calibrator: Any, target: str, targets: Sequence[str]) -> None:
    """Say what a calibrator of trees can be exported to, if it is one."""
    if tree_parts_of(calibrator) is not None:
        raise InputError(
            f"this calibrator corrects scores by trees on the columns of a row, which cannot be "
            f"written as {target}. Export it as {' or '.join(targets)}, or apply it with "
            "calibrant.load(...).calibrate(scores, features=...)."
        )
