"""Words of scikit-learn and misspelt ones: the error names ours."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import clone

import calibrant as cal
from calibrant.errors import ParameterError
from calibrant.metrics import CALLED_ELSEWHERE

Y, P = [0, 1, 0, 1], [0.1, 0.9, 0.2, 0.7]

ASKED = {
    "ece": (lambda: cal.metrics.ece(Y, P, n_bins=5), "ece has no .*n_bins.*write bins=5"),
    "strategy": (lambda: cal.metrics.ece(Y, P, strategy="quantile"), "write binning='mass'"),
    "mce": (lambda: cal.metrics.mce(Y, P, strategy="uniform"), "write binning='width'"),
    "its value": (lambda: cal.metrics.ece(Y, P, binning="quantile"), "mean 'mass'"),
    "a class": (lambda: cal.Histogram(n_bins=5), "Histogram has no .*write bins=5"),
    "its limits": (lambda: cal.Histogram(binning="uniform").fit(P, Y), "mean 'width'"),
    "diagram": (lambda: cal.reliability_diagram(Y, P, n_bins=5), "write bins=5"),
    "display": (
        lambda: cal.diagrams.ReliabilityDisplay.from_predictions(Y, P, n_bins=5),
        "write bins=5",
    ),
    "evaluate": (lambda: cal.evaluate(y_true=Y, y_prob=P), "y_true is called y here"),
    "classifier": (
        lambda: cal.CalibratedClassifier(None, method="sigmoid"),
        "method is called calibrator here: write calibrator='platt'",
    ),
    "method": (
        lambda: cal.CalibratedClassifier(None, "isotnic").fit([[1], [2]], [0, 1]),
        "mean 'isotonic'",
    ),
    "candidates": (lambda: cal.AutoCalibrator(candidates=["plat"]).fit(P, Y), "mean 'platt'"),
    "limits": (lambda: cal.Isotonic(interpolation="centerd").fit(P, Y), "mean 'centred'"),
    "curve": (lambda: cal.reliability_diagram(Y, P, curve="bined"), "mean 'binned'"),
    "code": (
        lambda: cal.CodedClassifier(cal.Platt(), code="one-vs-rest").fit(np.eye(3), [0, 1, 2]),
        "mean 'one_vs_rest'",
    ),
    "form": (lambda: cal.to_sql(cal.Platt().fit(P, Y), form="lookups"), "mean 'lookup'"),
}


@pytest.mark.parametrize(("ask", "words"), ASKED.values(), ids=ASKED)
def test_the_error_names_our_word(ask, words):
    with pytest.raises(ParameterError, match=words):
        ask()


@pytest.mark.parametrize("name", CALLED_ELSEWHERE)
def test_the_names_that_papers_have_for_a_measure_lead_to_ours(name):
    """Each call that the error names runs, and is not what the error was about."""
    with pytest.raises(AttributeError, match="Here it is ") as caught:
        getattr(cal.metrics, name)
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 30)
    y = np.arange(30) % 3
    call = str(caught.value).partition("Here it is ")[2].split(", or ")[0].rstrip(".")
    if call.startswith(("smooth_ece", "multicalibration")):  # of two classes
        y, p = y == 0, p[:, 0]
    found = eval(call, {**vars(cal.metrics), "y": y, "p": p, "frame": p.reshape(30, -1)})
    assert np.isfinite(getattr(found, "value", found))


def test_a_measure_misspelt():
    with pytest.raises(AttributeError, match="Did you mean 'spiegelhalter'"):
        cal.metrics.spiegelhalte  # noqa: B018
    assert not hasattr(cal.metrics, "__wrapped__")


def test_words_of_scikit_learn_that_are_ours_too():
    assert cal.CalibratedClassifier(None, "sigmoid").calibrator == "sigmoid"
    from calibrant.fitting.registry import to_calibrator

    assert repr(to_calibrator("sigmoid")) == "Platt()"


def test_other_mistakes_are_pythons_own():
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        cal.metrics.ece(Y, P, foo=3)


def test_signatures_and_parameters_stay():
    assert "bins" in inspect.signature(cal.metrics.ece).parameters
    assert clone(cal.Histogram(bins=3)).get_params()["bins"] == 3
    assert inspect.signature(cal.Histogram).parameters["bins"].default == 10
