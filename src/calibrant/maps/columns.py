"""One map per column, each a probability of its own: several labels at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibrant.errors import InputError
from calibrant.maps.base import Array, Map, VectorMap, maps_of_one_score
from calibrant.plan.row_nodes import Row, RowAxis

__all__ = ["Columns"]


@dataclass(frozen=True, eq=False)
class Columns(VectorMap):
    """Map j of column j, nothing combined: rows need not sum to one.

    Parameters
    ----------
    maps : tuple of maps, one per column

    Examples
    --------
    >>> from calibrant.maps import Identity
    >>> Columns((Identity(), Identity()))([[0.9, 0.8]]).tolist()
    [[0.9, 0.8]]
    """

    kind: ClassVar[str] = "columns"
    distribution: ClassVar[bool] = False

    maps: tuple[Map, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "maps", maps_of_one_score(self.maps, "columns"))
        if not self.maps:
            raise InputError("columns must be one or more maps of one score, but none came.")
        super().__post_init__()

    @property
    def n_columns(self) -> int:
        return len(self.maps)

    @property
    def n_classes(self) -> int:
        return len(self.maps)

    @property
    def takes_probabilities(self) -> bool:
        return any(member.takes_probabilities for member in self.maps)

    def lowered_rows(self, axis: RowAxis) -> Row:
        return axis.each([(j, member.lowered) for j, member in enumerate(self.maps)])

    def shifted(self, factor: Array) -> Map:
        pairs = zip(self.maps, factor, strict=True)
        return Columns(tuple(member.shifted(own) for member, own in pairs))

    def __call__(self, scores: ArrayLike) -> Array:
        s = np.asarray(scores, dtype=np.float64)
        if s.ndim != 2 or s.shape[1] != len(self.maps):
            raise InputError(
                f"scores must have the shape (n, {len(self.maps)}), but {s.shape} came."
            )
        return np.column_stack([member(s[:, j]) for j, member in enumerate(self.maps)])
