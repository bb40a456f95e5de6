"""The calibrators of the arena: ours, and those of other packages, each in a few lines.

A method is a function of probabilities (rows × classes, rows sum to 1) and codes 0, 1, … that
returns a function from new probabilities to calibrated ones. Of two classes it may return the
second column alone.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold

import calibrant as cal

Array = NDArray[np.float64]
Predict = Callable[[Array], Any]
Fit = Callable[[Array, NDArray[np.intp]], Predict]

OURS, NOTHING = "calibrant", "nothing"
#: our curve without the gate of the default; and how the name of a method behind a gate ends
BARE, GATED = "calibrant's BLS", ", gated"
#: the gate's log losses count no probability below this
FLOOR = 1e-6
BINARY, SEVERAL, BOTH = ("binary",), ("several",), ("binary", "several")


class Method(NamedTuple):
    """A contestant."""

    name: str
    #: what must be installed, as it is imported; and as pip calls it
    module: str
    package: str
    kinds: tuple[str, ...]
    fit: Fit

    @property
    def installed(self) -> bool:
        return find_spec(self.module) is not None


METHODS: dict[str, Method] = {}


def method(name: str, module: str, kinds: tuple[str, ...], package: str = "") -> Any:
    """Enter the function below as a contestant."""

    def enter(fit: Fit) -> Fit:
        METHODS[name] = Method(name, module, package or module, kinds, fit)
        return fit

    return enter


def methods(kind: str, gates: bool = False) -> list[Method]:
    """The contestants for two classes ("binary") or more ("several").

    With ``gates`` calibrant's curve bare, too, and every other method behind a gate.
    """
    found = [one for one in METHODS.values() if kind in one.kinds and one.name != BARE]
    if not gates:
        return found
    bare = [one for one in METHODS.values() if kind in one.kinds and one.name == BARE]
    behind = [gated(one) for one in found if one.name not in (OURS, NOTHING)]
    return [*found, *bare, *behind]


def contestant(name: str) -> Method:
    """A method by its name, bare or behind a gate."""
    if name.endswith(GATED):
        return gated(METHODS[name.removesuffix(GATED)])
    return METHODS[name]


def gated(one: Method) -> Method:
    """The method behind a gate: probabilities stay as they are unless it is better out of fold.

    Better by more than one standard error of the mean gain in log loss, in five folds.
    """

    def fit(p: Array, y: NDArray[np.intp]) -> Predict:
        folds = min(5, int(np.bincount(y, minlength=p.shape[1]).min()))
        if folds < 2:
            return lambda q: q
        gains = np.empty(len(y))
        for known, new in StratifiedKFold(folds, shuffle=True, random_state=0).split(p, y):
            found = np.asarray(one.fit(p[known], y[known])(p[new]), dtype=np.float64)
            if found.ndim == 1:  # of two classes the second column
                found = np.column_stack([1.0 - found, found])
            rows = np.arange(len(new)), y[new]
            after, before = (np.log(np.maximum(part[rows], FLOOR)) for part in (found, p[new]))
            gains[new] = after - before
        if not gains.mean() > gains.std(ddof=1) / np.sqrt(len(gains)):
            return lambda q: q
        return one.fit(p, y)

    return one._replace(name=one.name + GATED, fit=fit)


@method(NOTHING, "numpy", BOTH)
def _nothing(p: Array, y: Any) -> Predict:
    return lambda q: q


@method(OURS, "calibrant", BOTH)
def _ours(p: Array, y: Any) -> Predict:
    c = cal.AutoCalibrator(classes=list(range(p.shape[1])))
    if p.shape[1] == 2:
        c.fit(p[:, 1], y)
        return lambda q: c.predict_proba(q[:, 1])
    c.fit(p, y)
    return c.predict_proba


@method(BARE, "calibrant", BINARY)
def _curve(p: Array, y: Any) -> Predict:
    c = cal.BLS(classes=[0, 1]).fit(p[:, 1], y)
    return lambda q: c.predict_proba(q[:, 1])


# --- scikit-learn ---------------------------------------------------------------------------------


class _AsIs(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier whose probabilities are its features."""

    def fit(self, X: Array, y: Any) -> _AsIs:
        self.classes_ = np.arange(X.shape[1])
        return self

    def predict_proba(self, X: Array) -> Array:
        return X

    def predict(self, X: Array) -> Any:
        return X.argmax(axis=1)


def _scikit_learn(way: str) -> Fit:
    def fit(p: Array, y: Any) -> Predict:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.frozen import FrozenEstimator

        model = FrozenEstimator(_AsIs().fit(p, y))
        every = np.arange(len(y))  # nothing is learned in folds, and rare classes do not fill five
        c = CalibratedClassifierCV(model, method=way, ensemble=False, cv=[(every, every)])
        return c.fit(p, y).predict_proba  # type: ignore[no-any-return]

    return fit


for _way in ("sigmoid", "isotonic", "temperature"):
    method(f"scikit-learn {_way}", "sklearn", BOTH, "scikit-learn")(_scikit_learn(_way))


# --- packages of one score ------------------------------------------------------------------------


def _probcal(name: str) -> Fit:
    def fit(p: Array, y: Any) -> Predict:
        import probcal

        c = getattr(probcal, name)().fit(p[:, 1], y)
        return lambda q: c.predict_proba(q[:, 1])

    return fit


for _name, _kind in {
    "Platt": "PlattCalibrator",
    "beta": "BetaCalibrator",
    "spline": "SplineCalibrator",
    "Venn-Abers": "VennAbersCalibrator",
    "BBQ": "BBQCalibrator",
    "ENIR": "ENIRCalibrator",
    "centred isotonic": "CenteredIsotonicCalibrator",
    "selector": "CalibratorSelector",
}.items():
    method(f"probcal {_name}", "probcal", BINARY)(_probcal(_kind))


@method("betacal", "betacal", BINARY)
def _betacal(p: Array, y: Any) -> Predict:
    from betacal import BetaCalibration

    c = BetaCalibration().fit(p[:, 1:], y)
    return lambda q: c.predict(q[:, 1:])


@method("splinecalib", "splinecalib", BOTH)
def _splinecalib(p: Array, y: Any) -> Predict:
    from splinecalib import SplineCalib

    c = SplineCalib()
    if p.shape[1] == 2:
        c.fit(p[:, 1], y)
        return lambda q: c.predict_proba(q[:, 1])
    c.fit(p, y)
    return c.predict_proba  # type: ignore[no-any-return]


@method("MCGrad without features", "mcgrad", BINARY, "MCGrad")
def _mcgrad(p: Array, y: Any) -> Predict:
    import pandas as pd
    from mcgrad.methods import MCGrad

    c = MCGrad()
    c.fit(pd.DataFrame({"p": p[:, 1], "y": y}), "p", "y", None, [], [])
    return lambda q: c.predict(pd.DataFrame({"p": q[:, 1]}), "p", [], [])


# --- packages of several --------------------------------------------------------------------------


@method("venn-abers", "venn_abers", BOTH, "venn-abers")
def _venn_abers(p: Array, y: Any) -> Predict:
    from venn_abers import VennAbersCalibrator

    return lambda q: VennAbersCalibrator().predict_proba(p_cal=p, y_cal=y, p_test=q)


def _netcal(room: str, name: str) -> Fit:
    def fit(p: Array, y: Any) -> Predict:
        from importlib import import_module

        c = getattr(import_module(f"netcal.{room}"), name)()
        if p.shape[1] == 2:
            c.fit(p[:, 1], y)
            return lambda q: c.transform(q[:, 1])
        c.fit(p, y)
        return c.transform  # type: ignore[no-any-return]

    return fit


for _name, _room, _kind in (
    ("logistic", "scaling", "LogisticCalibration"),
    ("beta", "scaling", "BetaCalibration"),
    ("histogram", "binning", "HistogramBinning"),
    ("BBQ", "binning", "BBQ"),
):
    method(f"netcal {_name}", "netcal", BOTH)(_netcal(_room, _kind))


def _probmetrics(name: str) -> Fit:
    def fit(p: Array, y: Any) -> Predict:
        from probmetrics import calibrators

        quiet = {"svs_print_init_info": False, "sms_print_init_info": False}
        c = (
            calibrators.ETSCalibrator()
            if name == "ets"
            else calibrators.get_calibrator(name, **quiet)
        )
        return c.fit(p, y).predict_proba  # type: ignore[no-any-return]

    return fit


for _name, _kind, _kinds in (
    ("Platt on logits", "affine-scaling", BINARY),
    ("quadratic", "quadratic-scaling", BINARY),
    ("temperature", "temp-scaling", BOTH),
    ("ETS", "ets", BOTH),
    ("SVS", "svs", BOTH),
    ("SMS", "sms", BOTH),
):
    method(f"probmetrics {_name}", "probmetrics", _kinds)(_probmetrics(_kind))
method("probmetrics Dirichlet", "dirichletcal", BOTH, "dirichletcal")(_probmetrics("dircal"))
