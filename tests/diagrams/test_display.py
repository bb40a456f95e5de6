"""Reliability diagrams made as scikit-learn's CalibrationDisplay."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import calibrant as cal
from calibrant.diagrams import ReliabilityDisplay

X, Y = make_classification(400, n_redundant=10, flip_y=0.1, random_state=0)
NAMES = np.array(["no", "yes"])[Y]
MODEL = GaussianNB().fit(X[:200], NAMES[:200])


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def legend(display):
    whole = display.ax_.get_legend() or display.figure_.legends[0]
    return [text.get_text() for text in whole.get_texts()]


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_the_points_are_those_of_scikit_learn(strategy, ax):
    model = GaussianNB().fit(X[:200], Y[:200])
    theirs = CalibrationDisplay.from_estimator(
        model, X[200:], Y[200:], n_bins=5, strategy=strategy, ax=ax
    )
    binning = {"uniform": "width", "quantile": "mass"}[strategy]
    ours = ReliabilityDisplay.from_estimator(model, X[200:], Y[200:], bins=5, binning=binning)
    np.testing.assert_allclose(ours.curve_.mean_p, theirs.prob_pred, atol=0.02)
    if strategy == "uniform":
        np.testing.assert_allclose(ours.curve_.fraction, theirs.prob_true)


@pytest.mark.parametrize("pos_label", [None, "yes", "no"])
def test_an_estimator_is_its_predictions(pos_label):
    of_model = ReliabilityDisplay.from_estimator(MODEL, X[200:], NAMES[200:], pos_label=pos_label)
    p = MODEL.predict_proba(X[200:])[:, 0 if pos_label == "no" else 1]
    of_numbers = ReliabilityDisplay.from_predictions(NAMES[200:], p, pos_label=pos_label)
    assert of_model.curve_ == of_numbers.curve_
    assert of_model.curve_ == cal.diagrams.reliability_curve(NAMES[200:], p, pos_label=pos_label)
    assert (of_model.estimator_name, of_numbers.estimator_name) == ("GaussianNB", None)
    assert legend(of_numbers)[1:2] == ["predictions"]


def test_the_figure_is_that_of_reliability_diagram():
    p = MODEL.predict_proba(X)[:, 1]
    display = ReliabilityDisplay.from_predictions(NAMES, p, name="Bayes", title="t", axes="logit")
    assert isinstance(display.figure_, Figure)
    assert display.ax_ is display.figure_.axes[0]
    assert display.ax_.get_label() == "reliability"
    plain = cal.reliability_diagram(NAMES, p, names=("Bayes", ""), title="t", axes="logit")
    render = cal.diagrams.draw.render
    assert render(display.figure_) == render(plain) == display._repr_png_()


@pytest.mark.parametrize(
    "options", [{"curve": "isotonic"}, {"binning": "mass", "bins": 4}, {"band": None}]
)
def test_options_are_those_of_the_curve(options):
    weight = np.arange(len(Y)) % 3 + 1.0
    p = MODEL.predict_proba(X)[:, 1]
    display = ReliabilityDisplay.from_estimator(MODEL, X, NAMES, sample_weight=weight, **options)
    expected = cal.diagrams.reliability_curve(NAMES, p, sample_weight=weight, **options)
    assert display.curve_ == expected


def test_several_models_in_the_axes_of_one_figure(ax):
    first = ReliabilityDisplay.from_estimator(MODEL, X[200:], NAMES[200:], ax=ax)
    low = ax.get_xlim()
    rare = ReliabilityDisplay.from_predictions(Y, np.where(Y == 1, 0.02, 0.01), name="rare", ax=ax)
    assert first.ax_ is rare.ax_ is ax
    assert first.figure_ is ax.figure
    assert first._repr_png_() is None  # pyplot shows its own figures
    assert legend(rare) == ["ideal", "GaussianNB", "95 % interval (exact)", "rare"]
    colors = {line.get_label(): line.get_color() for line in ax.lines}
    assert colors["GaussianNB"] != colors["rare"]
    assert ax.get_xlim()[0] <= low[0]
    assert ax.get_xlim()[1] >= low[1]
    assert ax.get_ylim() == ax.get_xlim()


def test_calibrators_and_frames_are_estimators_too():
    scores = pd.Series(MODEL.predict_proba(X)[:, 1])
    calibrator = cal.Platt().fit(scores, NAMES)
    display = ReliabilityDisplay.from_estimator(calibrator, scores, NAMES)
    assert display.curve_ == cal.diagrams.reliability_curve(NAMES, calibrator.calibrate(scores))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    wrapped = cal.CalibratedClassifier(LogisticRegression(), "platt").fit(frame, NAMES)
    display = ReliabilityDisplay.from_estimator(wrapped, frame, NAMES)
    assert display.estimator_name == "CalibratedClassifier"


def test_what_cannot_be_shown_is_refused():
    rows, species = load_iris(return_X_y=True)
    with pytest.raises(cal.errors.InputError, match=r"two classes, but 3 came.*class_diagram"):
        ReliabilityDisplay.from_estimator(GaussianNB().fit(rows, species), rows, species)
    with pytest.raises(cal.errors.ParameterError, match=r"must have predict_proba, but LinearSVC"):
        ReliabilityDisplay.from_estimator(LinearSVC().fit(X, Y), X, Y)
    with pytest.raises(cal.errors.ParameterError, match="ax must be matplotlib Axes"):
        ReliabilityDisplay.from_predictions(Y, Y * 0.5, ax=3)
    with pytest.raises(cal.errors.InputError, match="pos_label"):
        ReliabilityDisplay.from_estimator(MODEL, X, NAMES, pos_label="maybe")


# --- what scikit-learn's own tests ask of CalibrationDisplay --------------------------------------

P = MODEL.predict_proba(X)[:, 1]


@pytest.mark.parametrize("make", ["from_estimator", "from_predictions"])
def test_it_is_plotted_again_under_its_name_or_another(make):
    data = (MODEL, X, NAMES) if make == "from_estimator" else (NAMES, P)
    display = getattr(ReliabilityDisplay, make)(*data, name="hand-made")
    assert display.estimator_name == "hand-made"
    first = display.figure_
    assert display.plot() is display
    assert display.figure_ is not first
    assert "hand-made" in legend(display)
    display.plot(name="another")
    assert "another" in legend(display)
    assert "hand-made" not in legend(display)
    assert display.estimator_name == "hand-made"


def test_it_is_made_of_a_curve_too(ax):
    curve = cal.diagrams.reliability_curve(NAMES, P)
    display = ReliabilityDisplay(curve, estimator_name="Bayes", pos_label="yes")
    assert not hasattr(display, "line_")
    display.plot(ax=ax)
    assert display.curve_ is curve
    assert display.pos_label == "yes"
    assert (display.ax_, display.figure_) == (ax, ax.figure)
    assert display.line_ in ax.lines
    np.testing.assert_array_equal(display.line_.get_xdata(), display.prob_pred)
    np.testing.assert_array_equal(display.line_.get_ydata(), display.prob_true)
    np.testing.assert_array_equal(display.prob_true, curve.fraction)


@pytest.mark.parametrize(
    "keywords",
    [
        {"c": "red", "lw": 2, "ls": "-."},
        {"color": "red", "linewidth": 2, "linestyle": "-."},
    ],
)
@pytest.mark.parametrize("curve", ["binned", "isotonic", "smooth"])
def test_keywords_of_the_line_by_either_of_their_names(keywords, curve):
    display = ReliabilityDisplay.from_estimator(MODEL, X, NAMES, curve=curve, alpha=0.8, **keywords)
    assert display.line_.get_color() == "red"
    assert display.line_.get_linewidth() == 2
    assert display.line_.get_linestyle() == "-."
    assert display.line_.get_alpha() == 0.8
    again = display.plot(marker="*", label="starred")
    assert again.line_.get_marker() == "*"
    assert "starred" in legend(again)


def test_the_band_and_the_histogram_have_the_colour_of_the_line():
    display = ReliabilityDisplay.from_predictions(NAMES, P, color="red")
    band = next(line for line in display.ax_.lines if line.get_label() == "_band")
    assert band.get_color() == "red"
    (bars,) = display.figure_.axes[1].patches
    assert bars.get_facecolor()[:3] == (1.0, 0.0, 0.0)


def test_the_diagonal_is_left_out_if_asked(ax):
    display = ReliabilityDisplay.from_predictions(NAMES, P, ref_line=False)
    assert "ideal" not in legend(display)
    one = ReliabilityDisplay.from_predictions(NAMES, P, name="one", ax=ax, ref_line=False)
    two = ReliabilityDisplay.from_predictions(NAMES, P**2, name="two", ax=ax)
    assert one.line_.get_color() != two.line_.get_color()
    assert legend(two).count("ideal") == 1


@pytest.mark.parametrize(("pos_label", "column"), [(None, 1), ("no", 0), ("yes", 1)])
def test_the_positive_class_is_the_one_asked_for(pos_label, column):
    display = ReliabilityDisplay.from_estimator(MODEL, X, NAMES, pos_label=pos_label)
    p = MODEL.predict_proba(X)[:, column]
    expected = cal.diagrams.reliability_curve(["no", "yes"][column] == NAMES, p)
    np.testing.assert_allclose(display.prob_true, expected.fraction)
    np.testing.assert_allclose(display.prob_pred, expected.mean_p)
    assert display.pos_label == ["no", "yes"][column]
    assert cal.ReliabilityDisplay is ReliabilityDisplay


def test_a_keyword_that_no_line_has_is_refused():
    with pytest.raises(AttributeError, match="colour"):
        ReliabilityDisplay.from_predictions(NAMES, P, colour="red")
