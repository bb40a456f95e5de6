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
    with pytest.raises(InputError, match=r"first at row 5, column 3: infinity"):
        method.fit(z, y)


@pytest.mark.parametrize("name", ["ensemble temperature", "top label", "vector"])
def test_rows_that_do_not_sum_to_one(name):
    z, y = draw()
    p = softmax(z, axis=1)
    p[9] *= 0.9
    method = clone(METHODS[name]).set_params(scale="logit")
    with pytest.raises(InputError, match=r"1 of 120 rows is not \(first at row 9: .* sum 0\.9"):
        method.fit(p, y)


def test_labels_that_may_count_from_one_are_warned_of():
    z, y = draw()
    y = np.where(y == 0, 1, y)
    with pytest.warns(UserWarning, match="holds 1 to 3.*classes=range\\(1, 5\\)"):
        c = cal.Temperature().fit(z, y)
    assert c.classes_.tolist() == [0, 1, 2, 3]
    assert cal.Temperature(classes=range(1, 5)).fit(z, y).classes_.tolist() == [1, 2, 3, 4]
