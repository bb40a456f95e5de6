"""The names that scikit-learn's own tests of calibration import, with our classes behind them.

Options are translated as `docs/howto/coming_from.md` says, and nothing else is: what we lack stays
lacking here. `own_tests` gives those tests with these names in place of scikit-learn's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.fixes import parse_version

import calibrant as cal
from calibrant.diagrams import ReliabilityDisplay, reliability_curve

#: the lists of failures are those of this version and later ones
SINCE = "1.9"
#: what is written otherwise in those files, so that they can be collected here
REPLACED = {
    "from sklearn.calibration import": "from sklearn_names import",
    "from sklearn.isotonic import": "from sklearn_names import",
    "@pytest.mark.thread_unsafe\n": "",
    "\n    yield_namespace_device_dtype_combinations(),\n)\ndef": (
        "\n    list(yield_namespace_device_dtype_combinations()),\n)\ndef"
    ),
}


def own_tests(name: str) -> dict[str, Any]:
    """The tests and fixtures of a test file of the installed scikit-learn."""
    if parse_version(sklearn.__version__) < parse_version(SINCE):
        pytest.skip(f"the list of failures is for scikit-learn {SINCE}", allow_module_level=True)
    file = Path(sklearn.__file__).parent / "tests" / f"{name}.py"
    if not file.exists():
        pytest.skip("this scikit-learn came without its tests", allow_module_level=True)
    text = file.read_text(encoding="utf-8")
    for theirs, ours in REPLACED.items():
        text = text.replace(theirs, ours)
    found: dict[str, Any] = {"__name__": f"sklearn.tests.{name}"}
    exec(compile(text, str(file), "exec"), found)
    return {
        name: value
        for name, value in found.items()
        if name.startswith("test_") or hasattr(value, "_get_wrapped_function")
    }


# --- sklearn.calibration --------------------------------------------------------------------------


class _SigmoidCalibration(cal.Platt):
    """Platt's sigmoid on scores as they are."""

    def __init__(self, scale="raw", weights="counts", classes=None, pos_label=None):
        super().__init__(scale=scale, weights=weights, classes=classes, pos_label=pos_label)

    def predict(self, scores):
        return self.calibrate(scores)


class _TemperatureScaling(cal.Temperature):
    """A temperature, which predicts the probability of each class."""

    def predict(self, scores):
        return self.predict_proba(scores)

    @property
    def beta_(self):
        return np.asarray(1.0 / self.temperature_)


CALIBRATORS = {
    "sigmoid": lambda: _SigmoidCalibration("auto"),
    "isotonic": lambda: cal.Isotonic(interpolation="linear"),
    "temperature": _TemperatureScaling,
}


class CalibratedClassifierCV(cal.CalibratedClassifier):
    """A CalibratedClassifier with the parameters of scikit-learn's."""

    decision = "calibrated"

    def __init__(self, estimator=None, *, method="sigmoid", cv=None, n_jobs=None, ensemble="auto"):
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.n_jobs = n_jobs
        self.ensemble = ensemble

    def fit(self, X, y, sample_weight=None, **fit_params):
        frozen = isinstance(self.estimator, FrozenEstimator)
        has_margins = hasattr(self.estimator, "decision_function") or self.estimator is None
        made = CALIBRATORS.get(self.method)
        fitted = cal.CalibratedClassifier(
            self.estimator,
            self.method if made is None else made(),
            cv=self.cv,
            ensemble=not frozen if self.ensemble == "auto" else self.ensemble,
            response_method="decision_function" if has_margins else "auto",
            n_jobs=self.n_jobs,
        ).fit(X, y, sample_weight, **fit_params)
        facts = vars(fitted)
        vars(self).update({k: v for k, v in facts.items() if k.endswith("_") or k == "_columns"})
        return self

    @property
    def calibrated_classifiers_(self):
        return self.members_


def _sigmoid_calibration(predictions, y, sample_weight=None, max_abs_prediction_threshold=30):
    fitted = _SigmoidCalibration().fit(predictions, y, sample_weight)
    return fitted.a_, fitted.b_


def _CalibratedClassifier(**parts: Any) -> Any:  # noqa: N802
    raise NotImplementedError


BINNING = {"uniform": "width", "quantile": "mass"}


def calibration_curve(y_true, y_prob, *, pos_label=None, n_bins=5, strategy="uniform"):
    binning = BINNING.get(strategy, strategy)
    curve = reliability_curve(y_true, y_prob, bins=n_bins, binning=binning, pos_label=pos_label)
    return curve.fraction, curve.mean_p


def _display_options(n_bins=5, strategy="uniform", **options):
    return {"bins": n_bins, "binning": BINNING.get(strategy, strategy), **options}


class CalibrationDisplay(ReliabilityDisplay):
    """A ReliabilityDisplay with the options of scikit-learn's."""

    @classmethod
    def from_estimator(cls, estimator, X, y, **options):
        return super().from_estimator(estimator, X, y, **_display_options(**options))

    @classmethod
    def from_predictions(cls, y_true, y_prob, **options):
        return super().from_predictions(y_true, y_prob, **_display_options(**options))

    @property
    def estimator_name(self):
        return self.name

    @property
    def prob_true(self):
        return self.curve_.fraction

    @property
    def prob_pred(self):
        return self.curve_.mean_p


# --- sklearn.isotonic -----------------------------------------------------------------------------


#: what scikit-learn calls the direction of a map
SIDES = {True: "rising", False: "falling", "auto": "auto"}


class IsotonicRegression(RegressorMixin, TransformerMixin, BaseEstimator):
    """`cal.Isotonic` of numbers of any size: they are moved to [0, 1], and what it gives back."""

    def __init__(self, *, y_min=None, y_max=None, increasing=True, out_of_bounds="nan"):
        self.y_min = y_min
        self.y_max = y_max
        self.increasing = increasing
        self.out_of_bounds = out_of_bounds

    def fit(self, X, y, sample_weight=None):
        y = np.asarray(y)
        self.low_ = float(y.min())
        self.size_ = float(y.max() - y.min()) or 1.0
        y_min, y_max = (
            None if bound is None else float(np.clip((bound - self.low_) / self.size_, 0.0, 1.0))
            for bound in (self.y_min, self.y_max)
        )
        self.fitted_ = cal.Isotonic(
            interpolation="linear",
            direction=SIDES[self.increasing],
            y_min=y_min,
            y_max=y_max,
            classes=[0, 1],
        ).fit(X, (y - self.low_) / self.size_, sample_weight)
        return self

    def predict(self, T):
        return self.low_ + self.size_ * self.fitted_.calibrate(T)

    transform = predict

    @property
    def X_thresholds_(self):  # noqa: N802
        return self.fitted_.map_.x

    @property
    def y_thresholds_(self):
        return self.predict(self.fitted_.map_.x)

    @property
    def X_min_(self):  # noqa: N802
        return self.fitted_.score_range_.low

    @property
    def X_max_(self):  # noqa: N802
        return self.fitted_.score_range_.high


def isotonic_regression(y, *, sample_weight=None, y_min=None, y_max=None, increasing=True):
    fitted = IsotonicRegression(y_min=y_min, y_max=y_max, increasing=increasing)
    return fitted.fit_transform(np.arange(len(y)), y, sample_weight=sample_weight)


def check_increasing(x, y):
    y = (np.asarray(y) - min(y)) / (max(y) - min(y))
    table = cal.ScoreTable.from_soft_labels(x, y)
    return cal.Isotonic(direction="auto").fit_table(table).direction_ == "rising"


def _make_unique(X, y, sample_weight):
    raise NotImplementedError
