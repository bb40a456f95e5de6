"""Trees on the columns of a row, as exports take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibrant.export.map_given import value_of
from calibrant.maps import Map


class ExportedColumn(NamedTuple):
    """A column that trees look at: its name (or place), and its categories, if it has any."""

    name: str | int
    categories: tuple[Any, ...] | None


class TreeParts(NamedTuple):
    """A map of the score, and rounds of trees: z ← factor · (z + Σ trees), from its logit.

    ``trees`` are a `calibrant.local.trees.SmallTrees`. They count ``columns`` from 0; the column
    after the last is z. ``facts`` is the fitted value that they come from.
    """

    start: Map
    columns: tuple[ExportedColumn, ...]
    trees: Any
    sizes: tuple[int, ...]
    factors: tuple[float, ...]
    facts: Any

    @property
    def ends(self) -> list[tuple[int, int, float]]:
        """For each round: its first tree, the first tree after it, and its factor."""
        lasts = np.cumsum(self.sizes).tolist()
        firsts = [0, *lasts[:-1]]
        return list(zip(firsts, lasts, self.factors, strict=True))


def tree_parts_of(calibrator: Any) -> TreeParts | None:
    """The trees of a calibrator that has some; None for all others."""
    parts: TreeParts | None = getattr(value_of(calibrator), "tree_parts", None)
    return parts
