"""The largest probability of a row mapped, and the others scaled to what is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.array_types import Array
from calibrant.data.distributions import row_blocks
from calibrant.data.json_facts import shown
from calibrant.errors import InputError
from calibrant.maps.base import Map, VectorMap
from calibrant.maps.checks import number, one_map, read_by, word
from calibrant.maps.softmax import softmax_of
from calibrant.maps.vector_mixture import seen_by_members
from calibrant.plan.map_input import start
from calibrant.plan.row_nodes import (
    LARGEST_LOGIT,
    LargestMapped,
    Row,
    RowAxis,
    Within,
    with_largest,
)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 2:
        raise InputError(f"columns must be a whole number from 2 on, but {shown(value)} came.")
    return int(value)


@dataclass(frozen=True, eq=False)
class TopLabel(VectorMap):
    """The largest probability of a row becomes map(largest); the others share what is left.

    Parameters
    ----------
    map : a map of one score, the largest probability of a row
    columns : int
        k, how many classes there are.
    input : {"logit", "probability"}
        What rows hold: logits, which are read by their softmax, or probabilities.
    factor : float, default=1.0
        1/T for a temperature T: first, logits are multiplied by it, and probabilities raised to its
        power and divided by their sum.

    Notes
    -----
    The others keep their ratios; where all of them are zero they get the same. The order of a row
    never turns: where the largest would fall below the second, it stays ahead by a millionth part.
    Several that are the largest together stay equal: each gets
    map(largest), but no more than the others leave it.

    Examples
    --------
    >>> from calibrant.maps import Logistic
    >>> half = Logistic(0.0, (("z", 0.5),))
    >>> TopLabel(half, 3, "probability")([[0.9, 0.08, 0.02]]).round(3).tolist()
    [[0.75, 0.2, 0.05]]
    >>> TopLabel(half, 3, "probability")([[0.4, 0.35, 0.25], [0.4, 0.2, 0.4]]).round(3).tolist()
    [[0.449, 0.321, 0.229], [0.449, 0.101, 0.449]]
    """

    kind: ClassVar[str] = "top_label"

    map: Map = field(metadata=one_map("the map of the top label"))
    columns: int = field(metadata=read_by(_count))
    input: str = field(default="logit", metadata=word("input", "logit", "probability"))
    factor: float = field(default=1.0, metadata=number("factor", LARGEST_LOGIT))

    def _check(self) -> None:
        if self.factor <= 0:
            raise InputError(f"factor must be above 0, but {self.factor:g} came.")

    @property
    def n_columns(self) -> int:
        return self.columns

    @property
    def reads(self) -> str:
        return self.input

    def lowered_rows(self, axis: RowAxis) -> Row:
        if self.input == "logit":
            p = softmax_of(axis, self.factor)
        else:
            p = Within(axis.to_the_power(self.factor).scores(), 0.0, 1.0)
        return LargestMapped(p, self.map.lowered(start(axis.target, "score")), self.columns)

    def __call__(self, scores: ArrayLike) -> Array:
        s = self.rows_of(scores)
        result = np.empty(s.shape)
        for rows in row_blocks(*s.shape):
            p = self.features(s[rows])
            result[rows] = with_largest(p, self.map(p.max(axis=1)))
        return result

    def features(self, rows: NDArray[Any]) -> Array:
        """The distributions of some rows. Probabilities are left as they are where they can be, so
        that equal ones stay equal."""
        if self.input == "probability" and self.factor == 1.0:
            return np.clip(rows.astype(np.float64), 0.0, 1.0)
        return seen_by_members(rows, self.input, 0.0, self.factor)
