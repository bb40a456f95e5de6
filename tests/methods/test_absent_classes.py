"""Classes that y lacks: fine where y is the place of a column, else they must be named."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone

import calibrant as cal
from calibrant.errors import InputError

METHODS = {
    "temperature": cal.Temperature(),
    "ensemble temperature": cal.EnsembleTemperature(),
    "vector": cal.VectorScaling(),
    "matrix": cal.MatrixScaling(),
    "dirichlet": cal.Dirichlet(),
    "structured": cal.StructuredScaling(),
    "top label": cal.TopLabelCalibrator(cal.Platt()),
    "one-vs-rest": cal.CodedCalibrator(cal.Platt()),
    "auto": cal.AutoCalibrator(cv=2),
}


def draw(n=120):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 4))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return z, np.where(y == 1, 2, y)  # no row of class 1


@pytest.mark.parametrize("name", METHODS)
def test_whole_numbers_are_places_of_columns(name):
    z, y = draw()
    plain = clone(METHODS[name]).fit(z, y)
    assert plain.classes_.tolist() == [0, 1, 2, 3]
    p = plain.predict_proba(z)
    named = clone(METHODS[name]).set_params(classes=[0, 1, 2, 3]).fit(z, y)
    assert p.tolist() == named.predict_proba(z).tolist()


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    "labels", [["a", "b", "c", "d"], [1, 2, 3, 4], [-1, 0, 1, 2], [0.0, 1.0, 2.0, 3.0]]
)
def test_other_labels_must_be_named(name, labels):
    z, y = draw()
    with pytest.raises(InputError, match=r"3|4 columns"):
        clone(METHODS[name]).fit(z, np.array(labels)[y])


def test_evaluate_reads_labels_alike():
    z, y = draw()
    p = softmax(z, axis=1)
    plain, named = cal.evaluate(y, p), cal.evaluate(y, p, classes=[0, 1, 2, 3])
    assert str(plain) == str(named)
    assert cal.metrics.log_loss(y, p) == cal.metrics.log_loss(y, p, classes=[0, 1, 2, 3])
    with pytest.raises(InputError, match="p has 4 columns and y 3 classes"):
        cal.evaluate(np.array(list("abcd"))[y], p)


def test_more_classes_than_columns():
    z, y = draw()
    with pytest.raises(InputError, match="add the columns that are missing, or correct y"):
        cal.VectorScaling().fit(z[:, :2], y)


@pytest.mark.parametrize("method", [cal.Temperature(), cal.StructuredScaling()])
def test_one_logit_that_is_not_a_number(method):
    z, y = draw()
    z[17, 2] = np.nan
    with pytest.raises(InputError, match=r"first at row 17, column 2: NaN\). Drop or impute"):
        method.fit(z, y)
    z[17, 2], z[5, 3] = 0.0, -np.inf
    with pytest.raises(InputError, match=r"first at row 5, column 3: -infinity"):
        method.fit(z, y)


@pytest.mark.parametrize("name", ["ensemble temperature", "top label", "vector"])
def test_rows_that_do_not_sum_to_one(name):
    z, y = draw()
    p = softmax(z, axis=1)
    p[9] *= 0.9
    method = clone(METHODS[name]).set_params(scale="logit")
    with pytest.raises(InputError, match=r"1 of 120 rows is not \(first at row 9: .* sum 0\.9"):
        method.fit(p, y)


@pytest.mark.parametrize("found", [[1, 2, 3], [1, 3], [2, 3], [2]])
def test_labels_that_may_count_from_one_are_refused(found):
    z = draw()[0]
    y, p = np.resize(found, len(z)), softmax(z, axis=1)
    told = rf"it holds {found[0]}.*no 0.*classes=range\(4\) or classes=range\(1, 5\)"
    for ask in (
        lambda: cal.Temperature().fit(z, y),
        lambda: cal.CodedCalibrator(cal.Platt()).fit(z, y),
        lambda: cal.AutoCalibrator().fit(z, y),
        lambda: cal.evaluate(y, p),
        lambda: cal.metrics.brier(y, p),
    ):
        with pytest.raises(InputError, match=told):
            ask()
    for first in (0, 1):
        c = cal.Temperature(classes=range(first, first + 4)).fit(z, y)
        assert c.classes_.tolist() == [first, first + 1, first + 2, first + 3]


# --- classes in another order than the sorted one -------------------------------------------------

ORDER = ["low", "mid", "high", "top"]


@pytest.mark.parametrize("name", [*METHODS, "similarity"])
def test_classes_are_in_the_order_in_which_they_are_named(name, tmp_path):
    z, y = draw()
    labels, places = np.array(ORDER)[y], np.argsort(ORDER)
    method = METHODS.get(name, cal.SimilarityBinning(gate=False))
    beside = {"features": z[:, :2]} if name == "similarity" else {}
    named = clone(method).set_params(classes=ORDER).fit(z, labels, **beside)
    assert named.classes_.tolist() == ORDER
    by_place = clone(method).set_params(classes=[0, 1, 2, 3]).fit(z, y, **beside)
    p = named.predict_proba(z, **beside)
    assert np.array_equal(p, by_place.predict_proba(z, **beside))  # 0, 1, 2, 3 are these classes
    found = np.array(ORDER)[by_place.predict(z, **beside)]
    assert named.predict(z, **beside).tolist() == found.tolist()
    cal.save(named, tmp_path / "c.json")
    loaded = cal.load(tmp_path / "c.json")
    assert loaded.classes == tuple(ORDER)
    assert np.array_equal(loaded.predict_proba(z, **beside), p)
    if name in ("vector", "one-vs-rest"):  # the same as with columns in the sorted order
        by_name = clone(method).set_params(classes=sorted(ORDER)).fit(z[:, places], labels)
        assert np.allclose(by_name.predict_proba(z[:, places]), p[:, places], atol=1e-6)
    before, after = (cal.metrics.log_loss(labels, q, classes=ORDER) for q in (softmax(z, 1), p))
    assert after < before + 0.1


def test_two_columns_are_in_the_sorted_order():
    z, y = draw()
    p, labels = softmax(z[:, :2], axis=1), np.array(["no", "yes"])[(y > 1).astype(int)]
    for method in (cal.Platt, cal.AutoCalibrator, cal.SegmentedCalibrator, cal.SimilarityBinning):
        beside = {"segments": labels} if method is cal.SegmentedCalibrator else {}
        beside |= {"features": z} if method is cal.SimilarityBinning else {}
        with pytest.raises(InputError, match="those of 'no' and 'yes', in this order"):
            method(classes=["yes", "no"]).fit(p, labels, **beside)
        method(classes=["yes", "no"]).fit(p[:, 1], labels, **beside)
        method(classes=["no", "yes"]).fit(p, labels, **beside)
