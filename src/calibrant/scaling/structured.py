"""Structured scaling: temperature first, then small corrections, shrunk by their number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import NDArray

from calibrant.data.score_matrix import ScoreMatrix, read_matrix
from calibrant.data.score_tensor import read_where_it_is
from calibrant.estimators.base import WEIGHTS
from calibrant.estimators.limits import Limit, Number, OneOf
from calibrant.maps import VectorMap
from calibrant.scaling.affine import AffineCalibrator
from calibrant.scaling.affine_family import Family
from calibrant.scaling.base import reading
from calibrant.tensors import library_of


class StructuredScaling(AffineCalibrator):
    """P = softmax((I + diag v + M)·x + b), x the log-probabilities at the best temperature.

    Parameters
    ----------
    structure : {"matrix", "vector"}, default="matrix"
        With the off-diagonal matrix M, or without it.
    lambda_intercept, lambda_diagonal, lambda_off_diagonal : float, default=1.0
        Strengths of the ridges on b, v and M; the defaults are the published ones.
    scale : {"auto", "logit", "raw"}, default="auto"
        ``"raw"``: scores are logits; ``"logit"``: they are probabilities, read by their logarithm;
        ``"auto"``: probabilities if every row lies in [0, 1] and sums to one, else logits.
    label_smoothing : float, default=0.0
        ε: targets are 1 − ε + ε/k for a row's own class and ε/k for the others.
    gate : bool, default=True
        Fall back to a temperature alone where that loses less on rows held out, and to the scores
        as they are unless the gain over them exceeds its standard error.
    weights, classes : see `VectorCalibrator`

    Attributes
    ----------
    temperature_ : float
        T of the first step.
    matrix_ : ndarray of shape (k, k)
    offsets_ : ndarray of shape (k,)
        I + diag v + M and b of the map that was kept.
    kept_ : {"fit", "temperature", "identity"}
        What was kept as the map.
    gain_, gain_error_ : float
        The fit's gain in log loss per row over the scores as they are, on rows held out, and its
        standard error (NaN: not measured).
    converged_, n_iter_ : bool, int
        That the solver converged (else the fit raises), and its steps.

    Notes
    -----
    First T is fitted by maximum likelihood. Then, with x = ln softmax(z / T), the fit minimises
    Σ loss + λ_b·k·Σ b² + λ_v·k·Σ v² + λ_M·k(k−1)·Σ M² (structured matrix and vector scaling [1]_):
    the more parameters of a kind there are, the more each is shrunk. So few rows give nearly
    temperature scaling, and many nearly matrix scaling. Convex; Newton's method, O(n·k⁴) per step
    up to 24 classes (vector: O(n·k²) up to 40), conjugate gradients above. A constant added to the
    logits of a row changes nothing. Weights count in units of rows. Zero probabilities are read as
    half the smallest positive one.

    The gate holds rows out in five folds, made of at most 20,000 rows and dealt in the order of
    their scores: nothing is random. Each fold fits its own T. Where this would take too long (1,400
    rows of 24 classes, 400 of 100), it holds out a single part, a fifth and at most 5,000 of the
    rows, and judges a fit to all the others.

    References
    ----------
    .. [1] E. Berta, D. Holzmüller, M. Jordan, F. Bach, "Structured matrix scaling for multi-class
       calibration", 2025.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(3000, 3))
    >>> y = (z + [0, 0, 1] + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> c = StructuredScaling().fit(3 * z, y)
    >>> c.predict_proba([[0, 0, 0]]).round(2).tolist()
    [[0.23, 0.2, 0.57]]
    """

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        **AffineCalibrator._limits,
        "structure": (OneOf(("matrix", "vector")),),
        "lambda_intercept": (Number(0.0),),
        "lambda_diagonal": (Number(0.0),),
        "lambda_off_diagonal": (Number(0.0),),
        "weights": (WEIGHTS,),
    }

    def __init__(
        self,
        *,
        structure: str = "matrix",
        lambda_intercept: float = 1.0,
        lambda_diagonal: float = 1.0,
        lambda_off_diagonal: float = 1.0,
        scale: str = "auto",
        label_smoothing: float = 0.0,
        gate: bool = True,
        weights: str = "importance",
        classes: Any = None,
    ) -> None:
        self.structure = structure
        self.lambda_intercept = lambda_intercept
        self.lambda_diagonal = lambda_diagonal
        self.lambda_off_diagonal = lambda_off_diagonal
        self.scale = scale
        self.label_smoothing = label_smoothing
        self.gate = gate
        self.weights = weights
        self.classes = classes

    def _read(self, scores: Any, y: Any, sample_weight: Any) -> tuple[ScoreMatrix, NDArray[Any]]:
        # JAX has no float64 unless asked for it, and in float32 the fit could not end
        stays = self.structure == "vector" and library_of(scores) != "jax"
        read = read_where_it_is if stays else read_matrix
        return read(scores, y, sample_weight, self.classes)

    def _fit(self, matrix: ScoreMatrix) -> VectorMap:
        read, k = reading(matrix, self.scale), matrix.n_classes
        factor = read.temperature(smoothing=self.label_smoothing).factor
        self.temperature_ = 1.0 / factor
        full = self.structure == "matrix"
        family = Family(read, full=full, smoothing=self.label_smoothing, inner=factor, tuned=True)
        strength = family.strength(
            diagonal=2.0 * self.lambda_diagonal * k,
            off_diagonal=2.0 * self.lambda_off_diagonal * k * (k - 1),
            intercept=2.0 * self.lambda_intercept * k,
        )
        fitted = self._fit_and_settle(family, lambda total: strength)
        self.matrix_, self.offsets_ = fitted.weights, fitted.bias
        return fitted
