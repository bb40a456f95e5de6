"""The uncertainty of a logistic regression by the delta method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import qr, svd
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.utils import check_array

from calibrant.array_types import Array
from calibrant.errors import InputError
from calibrant.local.spreads import (
    OWN_INTERVALS,
    Estimate,
    Spread,
    TrainingRows,
    probability,
    unwrap,
)

#: how many numbers there are in a block of rows
BLOCK = 1 << 21
#: the most columns: the factor holds the square of this many numbers
WIDEST = 10_000
#: a row that is this many standard deviations off the span of the training rows is outside it
OUTSIDE = 1e-8
EPS = float(np.finfo(float).eps)
#: the share of the L1 penalty under the older names of penalties
L1_SHARE = {"l2": 0.0, "l1": 1.0}


@dataclass(frozen=True, eq=False)
class Delta(Spread):
    """sd(η) = √(xᵀΣx) for the linear predictor η of a logistic regression, sd(p) = p(1−p)·sd(η).

    Σ = (X̃ᵀWX̃ + P)⁻¹, where W = w·p(1−p) and P is the Hessian of the penalty. A factor of Σ is
    kept. Its columns are scaled, and centred if there is a free intercept, so that units do not
    matter.
    """

    name: ClassVar[str] = "delta"
    constant: float  # the penalised column that stands for the intercept has this value; 0: none
    centre: Array
    scale: Array
    factor: Array
    unknown: Array  # directions that the training rows say nothing about
    base: float  # variance of the free intercept
    tolerance: float

    @staticmethod
    def suits(model: Any) -> bool:
        """Whether the last step of the model is a logistic regression."""
        return isinstance(unwrap(model)[0], LogisticRegression)

    @classmethod
    def of(cls, model: Any, train: TrainingRows | None) -> Delta:
        if train is None:
            raise InputError(
                "the delta method needs the rows that the model was fitted on, since the fitted "
                "model does not hold its Fisher information. Pass train=(X_train,), or "
                "train=(X_train, y_train, sample_weight) if it was fitted with weights."
            )
        strength = _strength(unwrap(model)[0])
        last, inner = unwrap(model, train.X)
        eta = np.asarray(last.decision_function(inner), dtype=np.float64)
        w = expit(eta) * expit(-eta) * (1.0 if train.weight is None else train.weight)
        return cls(model, *_factorise(last, _matrix(inner), w, strength))

    def __call__(self, X: Any) -> Estimate:
        last, inner = unwrap(self.model, X)
        eta = np.asarray(last.decision_function(inner), dtype=np.float64)
        blocks = _blocks(_matrix(inner), self.constant)
        sd_logit = np.sqrt(np.concatenate([self._variance(block) for block in blocks]))
        known = np.isfinite(sd_logit)
        slope = expit(eta) * expit(-eta)
        sd = np.where(known, slope * np.where(known, sd_logit, 0.0), np.inf)
        return Estimate(probability(self.model, X), eta, sd, sd_logit)

    def _variance(self, block: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):  # rows so far out that nothing is known
            z = (block - self.centre) / self.scale
            size = np.maximum(np.abs(z).max(axis=1, initial=0.0), 1.0)
            z = z / size[:, None]  # so that squares do not overflow
            found: Array = self.base + np.square(size * np.linalg.norm(z @ self.factor, axis=1))
        if self.unknown.shape[1]:
            away = np.linalg.norm(z @ self.unknown, axis=1)
            found[away > self.tolerance * (1.0 / size + np.linalg.norm(z, axis=1))] = np.inf
        return np.where(np.isnan(found), np.inf, found)


def _factorise(
    model: Any, X: Any, w: Array, strength: float
) -> tuple[float, Array, Array, Array, Array, float, float]:
    """The fields of `Delta` after its model."""
    free = model.fit_intercept and model.solver != "liblinear"
    constant = float(model.intercept_scaling) if model.fit_intercept and not free else 0.0
    p = X.shape[1] + (constant != 0.0)
    total = float(w.sum())
    centre, scale = np.zeros(p), np.ones(p)
    if not total > 0.0:  # separated so far that the rows carry no information at all
        return constant, centre, scale, np.zeros((p, 0)), np.eye(p), np.inf, OUTSIDE
    w = w / total
    if free:
        for _ in range(2):  # the second round takes out the rounding of large means
            centre = centre + _sum(X, constant, w, centre, power=1)
    scale = np.sqrt(_sum(X, constant, w, centre, power=2))
    size = np.abs(centre)
    flat = scale <= 1e3 * EPS * size
    scale = np.where(flat, np.where(size > 0.0, size, 1.0), scale)
    R = np.zeros((0, p))
    root, row = np.sqrt(w), 0
    for block in _blocks(X, constant):
        z = (block - centre) / scale
        z[:, flat] = 0.0
        z *= root[row : row + len(z), None]
        row += len(z)
        R = qr(np.vstack((R, z)), mode="r", overwrite_a=True, check_finite=False)[0][:p]
    if strength > 0.0:
        penalty = np.diag(np.sqrt(strength / total) / scale)
        R = qr(np.vstack((R, penalty)), mode="r", check_finite=False)[0][:p]
    _, s, Vt = svd(R, full_matrices=True, check_finite=False)
    rounding = EPS * (p + 10) * (1.0 + float((size / scale).max(initial=0.0)))
    rank = int((s > (0.0 if strength else rounding * s.max(initial=0.0))).sum())
    factor = Vt[:rank].T / (s[:rank] * np.sqrt(total))
    tolerance = max(OUTSIDE, 100.0 * rounding)
    return constant, centre, scale, factor, Vt[rank:].T, 1.0 / total if free else 0.0, tolerance


def _sum(X: Any, constant: float, w: Array, centre: Array, power: int) -> Array:
    """Σ w·(x − centre)^power over the rows, for each column."""
    total, row = np.zeros(len(centre)), 0
    for block in _blocks(X, constant):
        total += w[row : row + len(block)] @ (block - centre) ** power
        row += len(block)
    return total


def _matrix(X: Any) -> Any:
    return check_array(X, accept_sparse="csr", dtype=np.float64)


def _blocks(X: Any, constant: float) -> Iterator[Array]:
    """Dense blocks of rows, with the column that stands for a penalised intercept."""
    height = max(1, BLOCK // max(X.shape[1], 1))
    for first in range(0, X.shape[0], height):
        block = X[first : first + height]
        dense = block.toarray() if hasattr(block, "toarray") else block
        yield np.pad(dense, ((0, 0), (0, 1)), constant_values=constant) if constant else dense


def _strength(model: Any) -> float:
    """The factor 1/C of ½|β|²; a model for which the method is not right is refused."""
    reason = _refusal(model)
    if reason:
        raise InputError(f"the delta method {reason} {OWN_INTERVALS}")
    return 0.0 if _penalty(model) is None else 1.0 / _chosen(model, "C")


def _refusal(model: Any) -> str:
    """Why there is no interval by the delta method; empty if there is one."""
    share = L1_SHARE.get(_penalty(model), _chosen(model, "l1_ratio"))
    penalised = _penalty(model) is not None and np.isfinite(_chosen(model, "C"))
    columns = model.coef_.shape[1]
    reasons = {
        "is not right with an L1 or elastic-net penalty, which has a kink at zero: coefficients "
        "set to zero would count as known exactly.": penalised and share > 0.0,
        "is not right with class_weight: the weighted likelihood is not that of the data, and its "
        "curvature not the information.": model.class_weight is not None,
        "needs the coefficients of one fit, but refit=False averages those of the folds.": (
            isinstance(model, LogisticRegressionCV) and not model.refit
        ),
        'is for the binary likelihood, but multi_class="multinomial" came.': (
            getattr(model, "multi_class", None) == "multinomial"
        ),
        f"keeps a matrix of columns × columns, which is too large for {columns} columns (at most "
        f"{WIDEST}).": columns > WIDEST,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _penalty(model: Any) -> Any:
    """The penalty as older versions name it (None: no penalty); later ones use C and l1_ratio."""
    return getattr(model, "penalty", "deprecated")


def _chosen(model: Any, name: str) -> float:
    """A parameter as it was used: for LogisticRegressionCV the value that it chose."""
    own = f"{name}_" if isinstance(model, LogisticRegressionCV) else name
    value = np.ravel(getattr(model, own))[0]
    return 0.0 if value is None else float(value)
