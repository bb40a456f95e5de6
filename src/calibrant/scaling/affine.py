"""Calibrators whose map is softmax(W·x + b): the gate they share, and ridges on a full W."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from calibrant.array_types import Array
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.estimators.base import SCALES, WEIGHTS
from calibrant.estimators.limits import Limit, Number, OneOf
from calibrant.kernels.softmax import SoftmaxFit
from calibrant.maps import Softmax, VectorMap
from calibrant.scaling.affine_family import Family, HeldOutRows, choose_strength
from calibrant.scaling.base import LABEL_SMOOTHING, VectorCalibrator, reading


class AffineCalibrator(VectorCalibrator):
    """A calibrator whose map is softmax(W·x + b), unless something simpler does as well.

    With ``gate``, temperature scaling replaces the fit where it loses less on rows held out. The
    better of the two is kept only if its gain over the scores as they are exceeds the standard
    error of that gain; else the scores stay as they are.

    Attributes
    ----------
    kept_ : {"fit", "temperature", "identity"}
        What was kept as the map.
    gain_, gain_error_ : float
        The fit's gain in log loss per row over the scores as they are, on rows held out, and its
        standard error (NaN: not measured).
    converged_, n_iter_ : bool, int
        That the solver converged (else the fit raises), and its steps.
    """

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "scale": (SCALES,),
        "label_smoothing": (LABEL_SMOOTHING,),
        "gate": (OneOf((True, False)),),
    }

    scale: str
    label_smoothing: float
    gate: bool
    kept_: str

    def _settle(self, family: Family, fit: SoftmaxFit, held: HeldOutRows | None) -> Softmax:
        """The fitted map, or a simpler one if that does as well on rows held out."""
        self.converged_, self.n_iter_ = True, fit.steps
        self.gain_ = float("nan") if held is None else held.gain
        self.gain_error_ = float("nan") if held is None else held.error
        self.kept_ = "fit"
        if self.gate and held is not None:
            simple = family.judge.temperature_held_out()
            if simple.loss <= held.loss:
                self.kept_, held = "temperature", simple
            if held.gain <= held.error:
                self.kept_ = "identity"
        if self.kept_ == "fit":
            return family.map(fit.theta)
        return family.temperature_map() if self.kept_ == "temperature" else family.unchanged_map()

    def _fit_and_settle(self, family: Family, strength: Callable[[float], Array]) -> Softmax:
        fit = family.fit(strength)
        held = family.judged(strength, fit.theta) if self.gate else None
        return self._settle(family, fit, held)


class RidgeCalibrator(AffineCalibrator):
    """A full W with a ridge λ off its diagonal and a ridge μ on b, beside the mean log loss (ODIR).

    A subclass says by ``_inner`` how rows are read: None takes logits as they are, 1 normalises
    them to ln p first.
    """

    _inner: ClassVar[float | None] = None
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        **AffineCalibrator._limits,
        "lambda_": (OneOf(("auto",)), Number(0.0)),
        "mu": (OneOf((None,)), Number(0.0)),
        "weights": (WEIGHTS,),
    }

    def __init__(
        self,
        *,
        lambda_: float | str = "auto",
        mu: float | None = None,
        scale: str = "auto",
        label_smoothing: float = 0.0,
        gate: bool = True,
        weights: str = "importance",
        classes: Any = None,
    ) -> None:
        self.lambda_ = lambda_
        self.mu = mu
        self.scale = scale
        self.label_smoothing = label_smoothing
        self.gate = gate
        self.weights = weights
        self.classes = classes

    def _fit(self, matrix: ScoreMatrix) -> VectorMap:
        read = reading(matrix, self.scale)
        family = Family(read, full=True, smoothing=self.label_smoothing, inner=self._inner)
        k, n = family.k, family.total
        pairs, mu = k * (k - 1), self.mu

        def strength(value: float) -> Callable[[float], Array]:
            on_b = value if mu is None else mu

            def of(total: float) -> Array:
                off, on = 2.0 * total * value / pairs, 2.0 * total * on_b / k
                return family.strength(diagonal=0.0, off_diagonal=off, intercept=on)

            return of

        self.held_out_: dict[float, float] = {}
        if not isinstance(self.lambda_, str):
            value = float(self.lambda_)
            fitted = self._fit_and_settle(family, strength(value))
        elif family.is_small:
            part = family.sample
            choice = choose_strength(part, strength)
            # the ridge beside the summed loss stays the same when rows are added
            value, self.held_out_ = choice.value * part.total / n, choice.losses
            start = np.mean(choice.held.thetas, axis=0) / part.units * family.units
            fit, held = family.fit(strength(value), start), choice.held
            if self.gate and family.judge is not part:
                held = family.judged(strength(value), fit.theta)
            fitted = self._settle(family, fit, held)
        else:
            value, mu = pairs**2 / n, k**2 / n if mu is None else mu
            fitted = self._fit_and_settle(family, strength(value))
        self.lambda_used_, self.mu_used_ = value, value if mu is None else float(mu)
        self.matrix_, self.offsets_ = fitted.weights, fitted.bias
        return fitted
