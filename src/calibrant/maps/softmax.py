"""Softmax of scaled logits: temperature, vector, matrix and Dirichlet scaling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from calibrant.errors import InputError
from calibrant.losses import SMALLEST
from calibrant.maps.base import Array, VectorMap, float_array, one_of

__all__ = ["Softmax"]


@dataclass(frozen=True, eq=False)
class Softmax(VectorMap):
    """softmax(W·x + b) of a row x of logits, or of log-probabilities.

    Parameters
    ----------
    matrix : array of shape (), (k,) or (k, k)
        W: one factor for all (temperature), one per class (vector scaling), or a full matrix.
    bias : array of shape (k,)
    input : {"logit", "probability"}
        With ``"probability"`` the rows are probabilities and x their logarithm (clipped at 5e-324).

    Examples
    --------
    >>> Softmax(0.5, [0.0, 0.0])([[0.0, 2.0]]).round(3).tolist()
    [[0.269, 0.731]]
    """

    kind: ClassVar[str] = "softmax"

    matrix: Array
    bias: Array
    input: str = "logit"

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", float_array(self.matrix, "softmax matrix", (0, 1, 2)))
        object.__setattr__(self, "bias", float_array(self.bias, "softmax bias"))
        one_of(self.input, ("logit", "probability"), "softmax input")
        k = len(self.bias)
        if k < 2 or self.matrix.shape not in ((), (k,), (k, k)):
            raise InputError(
                f"a softmax over {k} classes cannot have a matrix of shape {self.matrix.shape}."
            )
        super().__post_init__()

    def __call__(self, scores: ArrayLike) -> Array:
        x = np.asarray(scores, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != len(self.bias):
            raise InputError(
                f"scores must have the shape (n, {len(self.bias)}), but {x.shape} came."
            )
        if self.input == "probability":
            x = np.log(np.clip(x, SMALLEST, 1.0))
        scaled = x @ self.matrix.T if self.matrix.ndim == 2 else x * self.matrix
        return np.asarray(softmax(scaled + self.bias, axis=1))
