"""A weighted average of distributions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.array_types import Array
from calibrant.data.distributions import row_blocks
from calibrant.errors import InputError
from calibrant.losses import softmax
from calibrant.maps.base import Map, VectorMap
from calibrant.maps.checks import check_weights, number, numbers, read_by, word
from calibrant.maps.softmax import softmax_of
from calibrant.plan.row_nodes import (
    LARGEST_LOGIT,
    Normalised,
    Row,
    RowAverage,
    RowAxis,
    Within,
    shares_of_largest,
    shares_of_sum,
)


@dataclass(frozen=True, eq=False)
class VectorMixture(VectorMap):
    """Σ weight · member(scores): the average of the members' distributions.

    Parameters
    ----------
    weights : array of shape (m,)
        Non-negative, of sum 1 (to 1e-9).
    members : tuple of m vector maps of the same columns
    input : {"score", "logit", "probability"}
        What rows hold. Members see a row of scores as it is, logits by their softmax, and
        probabilities divided by their sum.
    floor : float, default=0.0
        Probabilities that members see are raised to at least this; then rows are divided by their
        sums.
    factor : float, default=1.0
        1/T for a temperature T. Before all that, logits are multiplied by it, and probabilities
        raised to its power. So overconfident rows are softened before the floor cuts them.

    Examples
    --------
    >>> from calibrant.maps import Softmax
    >>> a, b = (Softmax(t, [0.0, 0.0], "probability") for t in (1.0, 0.0))
    >>> VectorMixture([0.5, 0.5], (a, b))([[0.9, 0.1]]).round(3).tolist()
    [[0.7, 0.3]]
    """

    kind: ClassVar[str] = "vector_mixture"

    weights: Array = field(metadata=numbers("mixture weights"))
    members: tuple[VectorMap, ...] = field(metadata=read_by(tuple))
    input: str = field(default="score", metadata=word("input", "score", "logit", "probability"))
    floor: float = field(default=0.0, metadata=number("floor"))
    factor: float = field(default=1.0, metadata=number("factor", LARGEST_LOGIT))

    def _check(self) -> None:
        check_weights(self.weights, self.members)
        if any(not isinstance(m, VectorMap) or not m.distribution for m in self.members):
            raise InputError("the members of a vector mixture must be maps to distributions.")
        if len({(m.n_columns, m.n_classes) for m in self.members}) != 1:
            raise InputError(
                "the members of a vector mixture must have the same columns and classes."
            )
        if not 0.0 <= self.floor <= 1.0 / self.n_columns:
            raise InputError(f"floor must lie in [0, 1/{self.n_columns}], but {self.floor:g} came.")
        if self.factor <= 0:
            raise InputError(f"factor must be above 0, but {self.factor:g} came.")

    @property
    def n_columns(self) -> int:
        return self.members[0].n_columns

    @property
    def n_classes(self) -> int:
        return self.members[0].n_classes

    @property
    def reads(self) -> str:
        if self.input != "score":
            return self.input
        same = {member.reads for member in self.members}
        return same.pop() if len(same) == 1 else "score"

    def lowered_rows(self, axis: RowAxis) -> Row:
        if self.input != "score":
            axis = self._distribution(axis)
        pairs = zip(self.weights.tolist(), self.members, strict=True)
        terms = [(w, member.lowered_rows(axis)) for w, member in pairs if w > 0.0]
        return RowAverage(tuple(terms))

    def _distribution(self, axis: RowAxis) -> RowAxis:
        """What the members see of a row, as nodes of a plan."""
        if self.input == "logit":
            p = softmax_of(axis, self.factor)
        else:
            axis = axis.to_the_power(self.factor)
            if axis.logits and self.floor == 0.0:
                return axis
            p = axis.scores()
        return replace(axis, row=Normalised(Within(p, self.floor, 1.0)), logits=False)

    def shifted(self, factor: Array) -> Map:
        used = np.flatnonzero(self.weights)
        if len(used) > 1:
            raise InputError(
                "an average of several distributions cannot be moved to other rates as one map: "
                "the average of the moved ones is another one. Adjust what it gives instead: "
                "adjust_prior(calibrator.predict_proba(scores), ...)."
            )
        only: Any = self.members[used[0]].shifted(factor)
        return replace(self, weights=np.ones(1), members=(only,))

    def __call__(self, scores: ArrayLike) -> Array:
        s = self.rows_of(scores)
        result = np.zeros((len(s), self.n_classes))
        for rows in row_blocks(*s.shape):
            x = self.features(s[rows])
            for weight, member in zip(self.weights, self.members, strict=True):
                result[rows] += weight * member(x)
        return np.minimum(result, 1.0, out=result)

    def features(self, rows: NDArray[Any]) -> Array:
        """What the members see of some rows."""
        return seen_by_members(rows, self.input, self.floor, self.factor)


def seen_by_members(rows: NDArray[Any], input: str, floor: float, factor: float = 1.0) -> Array:
    """Rows as they are, or as distributions whose entries are at least about ``floor``.

    >>> seen_by_members(np.array([[40.0, 0.0]]), "logit", 1e-7, 0.1).round(3).tolist()
    [[0.982, 0.018]]
    >>> seen_by_members(np.array([[1.0, 0.0]]), "probability", 0.25).tolist()
    [[0.8, 0.2]]
    """
    x = rows.astype(np.float64)
    if input == "score":
        return x
    if input == "logit":
        x = softmax(factor * np.clip(x, -LARGEST_LOGIT, LARGEST_LOGIT))
    elif factor != 1.0:
        x = shares_of_sum(shares_of_largest(x) ** factor)
    return shares_of_sum(np.clip(x, floor, 1.0))
