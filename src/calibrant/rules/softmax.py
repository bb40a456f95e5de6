"""Softmax of scaled logits: temperature, vector, matrix and Dirichlet scaling."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.array_types import Array
from calibrant.data.documents import brief
from calibrant.data.door import row_blocks
from calibrant.errors import InputError
from calibrant.losses import SMALLEST, log_softmax, softmax
from calibrant.rules.base import (
    Map,
    VectorMap,
    check_weights,
    field_read_by,
    map_field,
    number_field,
    numbers_field,
    word_field,
)
from calibrant.rules.plan.nodes import (
    LARGEST_LOGIT,
    Affine,
    LargestMapped,
    LogSoftmax,
    Normalised,
    Row,
    RowAverage,
    RowAxis,
    SoftmaxRow,
    Within,
    first_input,
    shares_of_largest,
    shares_of_sum,
    with_largest,
)
from calibrant.solvers.block_arrays import log_shares, ops_of, powers


@dataclass(frozen=True, eq=False)
class Softmax(VectorMap):
    """softmax(W·x + b) of a row x of logits, or of log-probabilities.

    Parameters
    ----------
    matrix : array of shape (), (k,) or (k, k)
        W: one factor for all (temperature), one per class (vector scaling), or a full matrix.
    bias : array of shape (k,)
    input : {"logit", "probability"}
        What rows hold. z is the row itself, or the logarithms of its probabilities.
    floor : float, default=5e-324
        Probabilities below it are raised to it before the logarithm.
    inner : float, optional
        By default x = z. With ``inner``, x = log_softmax(inner·z): then a constant that is added to
        all logits of a row changes nothing, whatever W is.

    Examples
    --------
    >>> Softmax(0.5, [0.0, 0.0])([[0.0, 2.0]]).round(3).tolist()
    [[0.269, 0.731]]
    """

    kind: ClassVar[str] = "softmax"

    matrix: Array = field(metadata=numbers_field("softmax matrix", (0, 1, 2)))
    bias: Array = field(metadata=numbers_field("softmax bias"))
    input: str = field(
        default="logit", metadata=word_field("softmax input", "logit", "probability")
    )
    floor: float = field(default=SMALLEST, metadata=number_field("softmax floor", 1.0))
    inner: float | None = field(default=None, metadata=number_field("inner", LARGEST_LOGIT))

    def _check(self) -> None:
        """Refuse a matrix and bias that do not go together, and parameters beyond their limits."""
        k = len(self.bias)
        if k < 2 or self.matrix.shape not in ((), (k,), (k, k)):
            raise InputError(
                f"a softmax over {k} classes cannot have a matrix of shape {self.matrix.shape}."
            )
        for name, values in (("matrix", self.matrix), ("bias", self.bias)):
            if np.abs(values).max() > LARGEST_LOGIT:
                raise InputError(f"the {name} of a softmax must be at most {LARGEST_LOGIT:g}.")
        if self.floor <= 0:
            raise InputError(f"the floor of a softmax must be above 0, but {self.floor:g} came.")

    @classmethod
    def unchanged(cls, classes: int, input: str) -> Self:
        """The map that returns distributions unchanged, and gives the softmax of logits."""
        return cls(np.array(1.0), np.zeros(classes), input)

    @property
    def n_columns(self) -> int:
        return len(self.bias)

    def __call__(self, scores: ArrayLike, out: NDArray[Any] | None = None) -> Array:
        """The distributions, float64 of the same shape; or written into ``out``.

        Rows are evaluated block by block: scores may be a float32 `numpy.memmap` larger than
        memory, and so may ``out``, an array of any float type.
        """
        x = self.rows_of(scores)
        result: NDArray[Any] = np.empty(x.shape) if out is None else out
        if result.shape != x.shape or result.dtype.kind != "f":
            raise InputError(
                f"out must be an array of floats of the shape {x.shape}, but {result.dtype} of "
                f"shape {result.shape} came."
            )
        for rows in row_blocks(*x.shape):
            z = self.features(x[rows].astype(np.float64))
            scaled = z @ self.matrix.T if self.matrix.ndim == 2 else z * self.matrix
            result[rows] = np.exp(log_softmax(np.asarray(scaled + self.bias)))
        return result

    @property
    def reads(self) -> str:
        return self.input

    def lowered_rows(self, axis: RowAxis) -> Row:
        """The softmax of W·x + b, where x are logits or logarithms of probabilities."""
        z = axis.log(self.floor) if self.input == "probability" else logits_of(axis)
        if self.inner is not None:
            z = LogSoftmax(Affine(z, np.array(self.inner)))
        return SoftmaxRow(Affine(z, self.matrix, self.bias))

    def shifted(self, factor: Array) -> Map:
        """The map with other biases, to which the logarithms of the factors are added."""
        return replace(self, bias=self.bias + np.log(factor))

    @property
    def weights(self) -> Array:
        """W as a (k, k) matrix, whatever its shape."""
        if self.matrix.ndim == 2:
            return self.matrix
        return np.diag(np.broadcast_to(self.matrix, self.bias.shape))

    def features(self, scores: Array, log_totals: Array | None = None) -> Array:
        """The numbers that W multiplies, of a block of float64 rows.

        ``log_totals`` are those of the rows, if they are known already.
        """
        ops = ops_of(scores)
        z: Array
        if self.input == "probability":
            z = ops.log_of(ops.clip(scores, self.floor, 1.0))
        else:
            z = ops.clip(scores, -LARGEST_LOGIT, LARGEST_LOGIT)
        if self.inner is None:
            return z
        z *= self.inner
        if log_totals is None:
            return log_shares(z)
        for part in log_totals.T:
            z -= ops.beside(part, z)[:, None]
        return z

    def log_totals(self, scores: Array) -> Array:
        """ln Σ exp(inner·z) of each row, which `features` subtracts.

        It is given as two numbers, so that large logits lose no digits: the largest inner·z, and
        the rest.
        """
        z = replace(self, inner=None).features(scores)
        z *= 1.0 if self.inner is None else self.inner
        ops = ops_of(z)
        _, top, total = powers(z)
        return np.column_stack((ops.host(top), ops.host(ops.log(total))))


def logits_of(axis: RowAxis) -> Row:
    """The node of a row of logits. An InputError if the row holds logits of probabilities."""
    if axis.logits:
        raise InputError(
            "input must be 'score': this calibrator takes logits as its scores, not probabilities "
            "whose logits could be given instead."
        )
    return Within(axis.row, -LARGEST_LOGIT, LARGEST_LOGIT)


def softmax_of(axis: RowAxis, factor: float) -> Row:
    """The softmax of a row of logits that are first multiplied by a factor."""
    return SoftmaxRow(Affine(logits_of(axis), np.array(factor)))


# --- The largest probability of a row mapped, and the others scaled to what is left ---------------


def _read_column_count(value: Any) -> int:
    """A checked number of columns."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 2:
        raise InputError(f"columns must be a whole number from 2 on, but {brief(value)} came.")
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

    map: Map = field(metadata=map_field("the map of the top label"))
    columns: int = field(metadata=field_read_by(_read_column_count))
    input: str = field(default="logit", metadata=word_field("input", "logit", "probability"))
    factor: float = field(default=1.0, metadata=number_field("factor", LARGEST_LOGIT))

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
        """The distribution whose largest entry is mapped."""
        if self.input == "logit":
            p = softmax_of(axis, self.factor)
        else:
            p = Within(axis.to_the_power(self.factor).scores(), 0.0, 1.0)
        return LargestMapped(p, self.map.lowered(first_input(axis.target, "score")), self.columns)

    def __call__(self, scores: ArrayLike) -> Array:
        s = self.rows_of(scores)
        result = np.empty(s.shape)
        for rows in row_blocks(*s.shape):
            p = self.features(s[rows])
            result[rows] = with_largest(p, self.map(p.max(axis=1)))
        return result

    def features(self, rows: NDArray[Any]) -> Array:
        """The distributions of some rows, which may be a tensor.

        Probabilities stay as they are where possible, so that equal ones stay equal.
        """
        ops = ops_of(rows)
        if self.input == "probability" and self.factor == 1.0:
            return ops.clip(ops.wide(rows), 0.0, 1.0)  # type: ignore[no-any-return]
        if not isinstance(rows, np.ndarray):
            z = Softmax.unchanged(self.columns, self.input).features(ops.wide(rows))
            return ops.exp(log_shares(self.factor * z))
        return seen_by_members(rows, self.input, 0.0, self.factor)


# --- A weighted average of distributions ----------------------------------------------------------


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

    weights: Array = field(metadata=numbers_field("mixture weights"))
    members: tuple[VectorMap, ...] = field(metadata=field_read_by(tuple))
    input: str = field(
        default="score", metadata=word_field("input", "score", "logit", "probability")
    )
    floor: float = field(default=0.0, metadata=number_field("floor"))
    factor: float = field(default=1.0, metadata=number_field("factor", LARGEST_LOGIT))

    def _check(self) -> None:
        """Refuse weights, members and parameters that do not go together."""
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
        """How all members read a row, if that is the same; else "score"."""
        if self.input != "score":
            return self.input
        same = {member.reads for member in self.members}
        return same.pop() if len(same) == 1 else "score"

    def lowered_rows(self, axis: RowAxis) -> Row:
        """The average of the members' rows: of what `features` gives them."""
        p: Row | None = None
        if self.input == "logit":
            p = softmax_of(axis, self.factor)
        elif self.input == "probability":
            axis = axis.to_the_power(self.factor)
            p = None if axis.logits and self.floor == 0.0 else axis.scores()
        if p is not None:
            axis = replace(axis, row=Normalised(Within(p, self.floor, 1.0)), logits=False)
        pairs = zip(self.weights.tolist(), self.members, strict=True)
        terms = [(w, member.lowered_rows(axis)) for w, member in pairs if w > 0.0]
        return RowAverage(tuple(terms))

    def shifted(self, factor: Array) -> Map:
        """The map at other base rates, if only one member has weight. An average of several is
        refused."""
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
        """Some rows as the members see them."""
        return seen_by_members(rows, self.input, self.floor, self.factor)


def seen_by_members(rows: NDArray[Any], input: str, floor: float, factor: float) -> Array:
    """Rows as they are, or as distributions whose entries are at least about ``floor``.

    Sums do not depend on how rows lie in memory: a last bit may decide the side of a jump.

    >>> seen_by_members(np.array([[40.0, 0.0]]), "logit", 1e-7, 0.1).round(3).tolist()
    [[0.982, 0.018]]
    >>> seen_by_members(np.array([[1.0, 0.0]]), "probability", 0.25, 1.0).tolist()
    [[0.8, 0.2]]
    """
    x = rows.astype(np.float64, order="C")
    if input == "score":
        return x
    if input == "logit":
        x = softmax(factor * np.clip(x, -LARGEST_LOGIT, LARGEST_LOGIT))
    elif factor != 1.0:
        x = shares_of_sum(shares_of_largest(x) ** factor)
    return shares_of_sum(np.clip(x, floor, 1.0))
