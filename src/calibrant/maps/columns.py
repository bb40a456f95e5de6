"""One map per column, each a probability of its own: several labels at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.array_types import Array
from calibrant.errors import InputError
from calibrant.maps.base import Map, VectorMap
from calibrant.maps.checks import map_tuple
from calibrant.plan.row_nodes import Row, RowAxis


@dataclass(frozen=True, eq=False)
class Columns(VectorMap):
    """Map j of column j. Nothing is combined, so rows need not sum to one.

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

    maps: tuple[Map, ...] = field(metadata=map_tuple("columns"))

    def _check(self) -> None:
        if not self.maps:
            raise InputError("columns must be one or more maps of one score, but none came.")

    @property
    def n_columns(self) -> int:
        return len(self.maps)

    def lowered_rows(self, axis: RowAxis) -> Row:
        return axis.each([(j, member.lowered) for j, member in enumerate(self.maps)])

    def shifted(self, factor: Array) -> Map:
        pairs = zip(self.maps, factor, strict=True)
        return Columns(tuple(member.shifted(own) for member, own in pairs))

    def __call__(self, scores: ArrayLike) -> Array:
        return each_column(self.maps, self.rows_of(scores))


def each_column(members: tuple[Map, ...], rows: NDArray[Any]) -> Array:
    """The value of map j at column j, for each row."""
    values = np.asarray(rows, dtype=np.float64)
    return np.column_stack([member(values[:, j]) for j, member in enumerate(members)])
