"""Softmax of scaled logits: temperature, vector, matrix and Dirichlet scaling."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.array_types import Array
from calibrant.errors import InputError
from calibrant.kernels.block_arrays import log_shares, ops_of, powers
from calibrant.losses import SMALLEST, log_softmax
from calibrant.maps.base import Map, VectorMap
from calibrant.maps.checks import number, numbers, word
from calibrant.plan.row_nodes import (
    LARGEST_LOGIT,
    Affine,
    LogSoftmax,
    Row,
    RowAxis,
    SoftmaxRow,
    Within,
)

#: numbers per block of rows: temporaries then stay in the cache
BLOCK = 1 << 17


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

    matrix: Array = field(metadata=numbers("softmax matrix", (0, 1, 2)))
    bias: Array = field(metadata=numbers("softmax bias"))
    input: str = field(default="logit", metadata=word("softmax input", "logit", "probability"))
    floor: float = field(default=SMALLEST, metadata=number("softmax floor", 1.0))
    inner: float | None = field(default=None, metadata=number("inner", LARGEST_LOGIT))

    def _check(self) -> None:
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
        """Distributions as they are, logits through the softmax."""
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
        step = max(1, BLOCK // x.shape[1])
        for start in range(0, len(x), step):
            rows = slice(start, start + step)
            result[rows] = np.exp(log_softmax(self._eta(x[rows].astype(np.float64))))
        return result

    @property
    def reads(self) -> str:
        return self.input

    def lowered_rows(self, axis: RowAxis) -> Row:
        z = axis.log(self.floor) if self.input == "probability" else logits_of(axis)
        if self.inner is not None:
            z = LogSoftmax(Affine(z, np.array(self.inner)))
        return SoftmaxRow(Affine(z, self.matrix, self.bias))

    def shifted(self, factor: Array) -> Map:
        return replace(self, bias=self.bias + np.log(factor))

    @property
    def weights(self) -> Array:
        """W as a (k, k) matrix, whatever its shape."""
        if self.matrix.ndim == 2:
            return self.matrix
        return np.diag(np.broadcast_to(self.matrix, self.bias.shape))

    def features(self, scores: Array, log_totals: Array | None = None) -> Array:
        """x of a block of float64 rows: what W multiplies.

        ``log_totals`` are those of the rows, where they are known already.
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
        """ln Σ exp(inner·z) of some float64 rows, which `features` takes off.

        As two numbers a row, so that large logits lose no digits: the largest inner·z, and what is
        above that.
        """
        z = replace(self, inner=None).features(scores)
        z *= 1.0 if self.inner is None else self.inner
        ops = ops_of(z)
        _, top, total = powers(z)
        return np.column_stack((ops.host(top), ops.host(ops.log(total))))

    def _eta(self, scores: Array) -> Array:
        x = self.features(scores)
        scaled = x @ self.matrix.T if self.matrix.ndim == 2 else x * self.matrix
        return np.asarray(scaled + self.bias)


def logits_of(axis: RowAxis) -> Row:
    """A row whose scores are logits; an InputError where it holds the logits of scores instead."""
    if axis.logits:
        raise InputError(
            "input must be 'score': this calibrator takes logits as its scores, not probabilities "
            "whose logits could be given instead."
        )
    return Within(axis.row, -LARGEST_LOGIT, LARGEST_LOGIT)


def softmax_of(axis: RowAxis, factor: float) -> Row:
    """The softmax of a row of logits that are first multiplied by a factor."""
    return SoftmaxRow(Affine(logits_of(axis), np.array(factor)))
