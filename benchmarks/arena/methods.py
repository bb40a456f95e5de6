"""The calibrators of the arena: ours, and those of other packages, each in a few lines.

A method is a function of probabilities (rows × classes, rows sum to 1) and codes 0, 1, … that
returns a function from new probabilities to calibrated ones. Of two classes it may return the
second column alone. A method that reads more than probabilities gets `Rows` in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold

import calibrant as cal

Array = NDArray[np.float64]
Labels = NDArray[np.intp]
Predict = Callable[[Any], Any]
Fit = Callable[[Any, Labels], Predict]

OURS, NOTHING = "calibrant", "nothing"
#: our curve without the gate of the default; and how the name of a method behind a gate ends
BARE, GATED = "calibrant's BLS", ", gated"
#: the gate's log losses count no probability below this
FLOOR = 1e-6
#: what a method may read beside probabilities
MARGINS, FEATURES = "margins", "features"
BINARY, SEVERAL, BOTH = ("binary",), ("several",), ("binary", "several")


class Rows(NamedTuple):
    """What is known of rows but their labels.

    ``margins`` are a model's scores before they became probabilities, where it has such scores;
    ``features`` the columns that it saw, as they came, where the source has them.
    """

    p: Array
    margins: Array | None = None
    features: pd.DataFrame | None = None

    def take(self, rows: Labels) -> Rows:
        """Some of the rows, as copies."""
        margins = None if self.margins is None else self.margins[rows]
        features = None if self.features is None else self.features.iloc[rows].copy()
        return Rows(self.p[rows], margins, features)


class Method(NamedTuple):
    """A contestant.

    ``reads`` is what it looks at: probabilities alone, or margins or features, too. Then ``fit``
    and what it returns get `Rows` in place of probabilities.
    """

    name: str
    #: what must be installed, as it is imported; and as pip calls it
    module: str
    package: str
    kinds: tuple[str, ...]
    fit: Fit
    reads: str = "probabilities"

    @property
    def installed(self) -> bool:
        return find_spec(self.module) is not None

    def learn(self, rows: Rows, y: Labels) -> Predict:
        """Fit the method to rows; what it returns takes rows as well."""
        if self.reads != "probabilities":
            return self.fit(rows, y)
        predict = self.fit(rows.p, y)
        return lambda new: predict(new.p)


METHODS: dict[str, Method] = {}


def method(
    name: str,
    module: str,
    kinds: tuple[str, ...],
    package: str = "",
    reads: str = "probabilities",
) -> Any:
    """Enter the function below as a contestant."""

    def enter(fit: Fit) -> Fit:
        METHODS[name] = Method(name, module, package or module, kinds, fit, reads)
        return fit

    return enter


def methods(kind: str, gates: bool = False, features: bool = True) -> list[Method]:
    """The contestants for two classes ("binary") or more ("several").

    With ``gates`` calibrant's curve bare, too, and every other method behind a gate. Without
    ``features`` none that reads them.
    """
    found = [
        one
        for one in METHODS.values()
        if kind in one.kinds and one.name != BARE and (features or one.reads != FEATURES)
    ]
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

    def fit(rows: Rows, y: Labels) -> Predict:
        folds = min(5, int(np.bincount(y, minlength=rows.p.shape[1]).min()))
        if folds < 2:
            return lambda new: new.p
        gains = np.empty(len(y))
        for known, new in StratifiedKFold(folds, shuffle=True, random_state=0).split(rows.p, y):
            predict = one.learn(rows.take(known), y[known])
            found = np.asarray(predict(rows.take(new)), dtype=np.float64)
            if found.ndim == 1:  # of two classes the second column
                found = np.column_stack([1.0 - found, found])
            at = np.arange(len(new)), y[new]
            after, before = (np.log(np.maximum(p[at], FLOOR)) for p in (found, rows.p[new]))
            gains[new] = after - before
        if not gains.mean() > gains.std(ddof=1) / np.sqrt(len(gains)):
            return lambda new: new.p
        return one.learn(rows, y)

    reads = FEATURES if one.reads == FEATURES else MARGINS
    return one._replace(name=one.name + GATED, fit=fit, reads=reads)


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

    def __init__(self, classes: int = 2) -> None:
        self.classes = classes

    def fit(self, X: Array, y: Any) -> _AsIs:
        self.classes_ = np.arange(self.classes)
        return self

    def predict_proba(self, X: Array) -> Array:
        return X

    def predict(self, X: Array) -> Any:
        return X.argmax(axis=1)


class _Margins(_AsIs):
    """A fitted classifier whose margins are its features."""

    def decision_function(self, X: Array) -> Array:
        return X.ravel() if self.classes == 2 else X


def _scikit_learn(way: str) -> Fit:
    """As scikit-learn calibrates a model: by its margins where it has any."""

    def fit(rows: Rows, y: Any) -> Predict:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.frozen import FrozenEstimator

        kind = _AsIs if rows.margins is None else _Margins
        X, k = _seen(rows), rows.p.shape[1]
        model = FrozenEstimator(kind(k).fit(X, y))
        every = np.arange(len(y))  # nothing is learned in folds, and rare classes do not fill five
        c = CalibratedClassifierCV(model, method=way, ensemble=False, cv=[(every, every)])
        c.fit(X, y)
        return lambda new: c.predict_proba(_seen(new))

    return fit


def _seen(rows: Rows) -> Array:
    if rows.margins is None:
        return rows.p
    return rows.margins.reshape(len(rows.p), -1)


for _way in ("sigmoid", "isotonic", "temperature"):
    method(f"scikit-learn {_way}", "sklearn", BOTH, "scikit-learn", MARGINS)(_scikit_learn(_way))


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


#: names of the same calibrator in calibre 0.4, which Python 3.11 has, and in newer versions
CALIBRE = {
    "near-isotonic": ("NearlyIsotonicRegression", "NearlyIsotonicCalibrator"),
    "relaxed PAVA": ("RelaxedPAVA", "RelaxedPAVACalibrator"),
    "spline": ("ISplineCalibrator", "SplineCalibrator"),
}


def _calibre(names: tuple[str, str]) -> Fit:
    def fit(p: Array, y: Any) -> Predict:
        import calibre

        name = next(name for name in names if hasattr(calibre, name))
        c = getattr(calibre, name)().fit(p[:, 1], y)
        return lambda q: c.transform(q[:, 1])

    return fit


for _name, _names in CALIBRE.items():
    method(f"calibre {_name}", "calibre", BINARY)(_calibre(_names))


@method("MCGrad without features", "mcgrad", BINARY, "MCGrad")
def _mcgrad(p: Array, y: Any) -> Predict:
    predict = _mcgrad_of(Rows(p), y)
    return lambda q: predict(Rows(q))


@method("MCGrad with features", "mcgrad", BINARY, "MCGrad", FEATURES)
def _mcgrad_of(rows: Rows, y: Any) -> Predict:
    from mcgrad.methods import MCGrad

    features = pd.DataFrame() if rows.features is None else rows.features
    numbers = [name for name in features if pd.api.types.is_numeric_dtype(features[name])]
    words = [name for name in features if name not in set(numbers)]

    def frame(some: Rows, **more: Any) -> pd.DataFrame:
        known = None if some.features is None else some.features.reset_index(drop=True)
        said = pd.DataFrame({"model says": some.p[:, 1], **more})
        return said if known is None else pd.concat([known, said], axis=1)

    c = MCGrad()
    c.fit(frame(rows, label=y), "model says", "label", None, words, numbers)
    return lambda new: c.predict(frame(new), "model says", words, numbers)


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
