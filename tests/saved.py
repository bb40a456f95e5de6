"""One fitted calibrator of every kind, and what it takes to use what was saved of it."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

import calibrant as cal
from calibrant.data.attributes import Attribute, Schema
from calibrant.maps import (
    Chain,
    Coded,
    Columns,
    Identity,
    Interval,
    Logistic,
    Map,
    Mixture,
    Piecewise,
    Segmented,
    Softmax,
    TopLabel,
    VectorMap,
    VectorMixture,
)
from calibrant.methods.acp.rule import IntervalBins
from calibrant.methods.features.rule import SmallTrees, TreeRounds
from cases import CASES

#: finite scores, as far apart as they can be
SCORES = np.array([-1.7e308, -40.0, -1.0, 0.0, 5e-324, 0.25, 0.5, 1.0, 3.0, 800.0, 1.7e308])
DIGITS = 7  # of the random scores: nobody else would write such a number


def simulate(n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, most of them different, and what came."""
    rng = np.random.default_rng(seed)
    scores = np.round(rng.random(n) * 0.96 + 0.02, DIGITS)
    return scores, (rng.random(n) < scores**2).astype(int)


def simulate_classes(n: int, k: int = 3, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Rows of k logits, and the class of each."""
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(0.0, 2.0, (n, k)), DIGITS)
    return scores, np.argmax(scores + rng.gumbel(size=(n, k)), axis=1)


def simulate_features(n: int, seed: int = 2) -> list[list[Any]]:
    """Rows of a number and a colour."""
    numbers = np.random.default_rng(seed).normal(size=n)
    return [[round(float(v), DIGITS), COLOURS[i % 3]] for i, v in enumerate(numbers)]


COLOURS = ("red", "green", "blue")


def fit_all(n: int = 60) -> dict[str, Any]:
    """Every calibrator that there is, fitted to n rows."""
    scores, y = simulate(n)
    rows, codes = simulate_classes(n)
    features = simulate_features(n)
    country = np.array(["de", "fr", "it"])[np.arange(n) % 3]
    labels = np.column_stack([codes == 0, codes == 1]).astype(int)
    vectors = {
        "temperature-classes": cal.Temperature(),
        "vector": cal.VectorScaling(),
        "matrix": cal.MatrixScaling(),
        "dirichlet": cal.Dirichlet(),
        "structured": cal.StructuredScaling(),
        "ensemble-temperature": cal.EnsembleTemperature(),
        "top-label": cal.TopLabelCalibrator(cal.Platt()),
        "coded-normalize": cal.CodedCalibrator(cal.Platt()),
        "coded-coupling": cal.CodedCalibrator(cal.Isotonic(), combine="coupling"),
        "coded-squares": cal.CodedCalibrator(cal.Isotonic(), combine="least_squares"),
        "auto-classes": cal.AutoCalibrator(cv=2),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.errors.CalibrationWarning)
        fitted = {case.name: clone(case.calibrator).fit(scores, y) for case in CASES}
        fitted |= {name: one.fit(rows, codes) for name, one in vectors.items()}
        fitted["multilabel"] = cal.MultiLabelCalibrator(cal.Platt()).fit(rows[:, :2], labels)
        fitted["segmented"] = cal.SegmentedCalibrator(shrinkage=5.0).fit(
            scores, y, segments=country
        )
        fitted["similarity"] = cal.SimilarityBinning(gate=False, k=5).fit(
            scores, y, features=features
        )
        fitted["similarity-classes"] = cal.SimilarityBinning(gate=False, k=5).fit(
            rows, codes, features=features
        )
        fitted["acp"] = cal.ACP(smoothing="laplace").fit(scores, y)
    return fitted


@functools.cache
def saved() -> dict[str, Any]:
    """What would be saved of every calibrator, and of maps of each kind inside each other."""
    made = {name: one.to_fitted() for name, one in fit_all().items()}
    return made | nested() | {"hand-trees": cal.Fitted(fixed_trees(), ("no", "yes"), "no")}


def fixed_trees() -> TreeRounds:
    """Two rounds of trees made by hand: numbers, categories, gaps, and a leaf for a tree."""

    def whole(*values: int) -> np.ndarray:
        return np.array(values, dtype=np.int32)

    first = SmallTrees(
        whole(0, 1, 2),
        np.array([0.25, 0.0, -0.5]),
        np.array([True, False, False]),
        whole(-1, 0, -1),
        whole(1, -1, -4),
        whole(-3, -2, -5),
        np.array([-0.5, 0.125, 0.75, -0.25, 1.0]),
        whole(0, 2),
        ((0, 2),),
    )
    second = SmallTrees(
        whole(1, 0),
        np.array([0.0, 1.5]),
        np.array([False, False]),
        whole(0, -1),
        whole(1, -1),
        whole(-3, -2),
        np.array([0.3, -0.2, 0.1, 0.05]),
        whole(0, -4),
        ((1,),),
    )
    schema = Schema(
        (Attribute("age"), Attribute("colour", ("blue", "green", "red", "white"))), named=True
    )
    line = Logistic(0.1, (("z", 0.7),))
    return TreeRounds.of_rounds(line, schema, [first, second], [1.25, 0.875])


def nested() -> dict[str, Any]:
    """Maps made by hand, so that every kind and field occurs."""
    step = Piecewise.step([0.2, 0.6], [0.1, 0.3, 0.9])
    line = Piecewise.linear([-2.0, 0.5, 3.0], [-1.0, 0.0, 2.5], "logit", "logit")
    sigmoid = Logistic(0.1, (("z", 0.7), ("z2", -0.05)), (0.01, 0.99))
    beta = Logistic(-0.2, (("ln_p", 0.5), ("neg_ln_1mp", 0.8)))
    mix = Mixture(np.array([0.25, 0.5, 0.25]), (step, sigmoid, Chain((beta, line))))
    band = Interval(step, Identity(), mix, 0.9)
    parts = Segmented(mix, ("de", 7), (band, beta), np.array([0.5, 1.0]), "default")
    pairs = np.array([[1.0, 1.0, 0.0], [-1.0, 0.0, 1.0], [0.0, -1.0, -1.0]])
    soft = Softmax(np.eye(3) + 0.1, [0.1, 0.0, -0.1], "probability", 1e-6, 0.9)
    three = (step, sigmoid, band)
    coded = Coded(pairs, three, "coupling", [1.0, 2.0, 1.0])
    average = VectorMixture([0.5, 0.5], (soft, coded), "logit", 1e-4, 0.8)
    binary = {"band": band, "segments": parts, "chain": Chain((line, parts))}
    vector = {
        "softmax": soft,
        "pairs": coded,
        "pairwise": Coded(pairs, three, "pairwise"),
        "average": average,
        "top": TopLabel(mix, 3, "probability", 0.7),
        "columns": Columns(three),
    }
    facts = {"rows": 3, "measures": {"after": {"auc": 0.5}, "folds": [1, 2]}}
    made = {
        name: cal.Fitted(one, ("no", "yes"), "no", "hand", {"x": [1, 2.5]}, facts)
        for name, one in binary.items()
    }
    return {f"hand-{name}": one for name, one in made.items()} | {
        f"hand-{name}": cal.Fitted(one, (1, True, "1"), None, "hand", {}, facts)
        for name, one in vector.items()
    }


# --- using what was loaded ----------------------------------------------------------------------


def use(fitted: Any) -> np.ndarray:
    """Probabilities of finite scores, checked; a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p = _use(fitted) if isinstance(fitted.rule, Map) else _use_local(fitted)
    assert np.isfinite(p).all()
    assert p.min() >= 0.0
    assert p.max() <= 1.0
    whole = getattr(fitted.rule, "distribution", True)
    if whole:
        assert np.abs(p.sum(axis=1) - 1.0).max() <= 1e-8
    return p


def _use(fitted: Any) -> np.ndarray:
    options = {}
    if isinstance(fitted.map, Segmented):
        keys = fitted.map.keys or ("none",)
        options["segments"] = _objects([keys[i % len(keys)] for i in range(len(SCORES))])
    if isinstance(fitted.map, VectorMap):
        scores: Any = _matrix(fitted.map)
    else:
        scores = SCORES
        p = fitted.calibrate(scores, **options, on_range="allow")
        assert np.array_equal(
            p, fitted.predict_proba(scores, **options, on_range="allow")[:, fitted.positive_column]
        )
    predicted = fitted.predict(scores, **options, on_range="allow").tolist()
    if not isinstance(fitted.map, Columns):
        known = {(type(c), c) for c in fitted.classes}
        assert {(type(c), c) for c in predicted} <= known
    return fitted.predict_proba(scores, **options, on_range="allow")


def _matrix(map_: VectorMap) -> np.ndarray:
    k = map_.n_columns
    scores = np.array([[SCORES[(i + j) % len(SCORES)] for j in range(k)] for i in range(12)])
    if getattr(map_, "input", "") != "probability":
        return scores
    shares = np.abs(np.sin(np.arange(5 * k, dtype=float))).reshape(5, k) + 0.01
    return np.vstack((shares / shares.sum(axis=1, keepdims=True), np.eye(k)[:5]))


def _use_local(fitted: cal.Fitted) -> np.ndarray:
    n, k = len(SCORES), len(fitted.classes)
    if isinstance(fitted.rule, IntervalBins):
        middle = np.resize(fitted.rule.scores, n)
        inside = fitted.predict_proba(SCORES, lower=middle, upper=middle, on_range="allow")
        outside = np.full(n, np.inf)
        return np.vstack(
            (inside, fitted.predict_proba(SCORES, lower=-outside, upper=outside, on_range="allow"))
        )
    columns = [
        SCORES.tolist() if a.categories is None else np.resize(_objects(a.categories), n).tolist()
        for a in fitted.rule.schema.attributes
    ]
    features = np.empty((n, len(columns)), dtype=object)
    for j, column in enumerate(columns):
        features[:, j] = column or [None] * n
    scores = SCORES if k == 2 else np.column_stack([np.roll(SCORES, j) for j in range(k)])
    return fitted.predict_proba(scores, features=features, on_range="allow")


def _objects(values: Any) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array
