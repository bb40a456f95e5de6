"""Frames whose columns bear the names of the classes: another order is refused.

So is a column of labels that is named for scores or weights, too.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.data.naming import check_class_columns
from calibrant.errors import InputError

RNG = np.random.default_rng(0)
P = RNG.dirichlet([1.0, 2.0, 3.0], 120)
NAMES = ["a", "b", "c"]
Y = np.array(NAMES)[[RNG.choice(3, p=p) for p in P]]
TWO = np.column_stack((1.0 - P[:, 0], P[:, 0]))
YES = np.where(RNG.random(120) < P[:, 0], "yes", "no")
KINDS = {
    "pandas": lambda p, names: pd.DataFrame(p, columns=names),
    "polars": lambda p, names: pl.DataFrame(p, schema=names),
    "arrow": lambda p, names: pa.table(dict(zip(names, p.T, strict=True))),
}
OF_TWO = {
    "fit": lambda p: cal.Platt().fit(p, YES).calibrate(P[:, 0]),
    "calibrate": lambda p: cal.Platt().fit(TWO, YES).calibrate(p),
    "fitted": lambda p: cal.Platt().fit(TWO, YES).to_fitted().predict_proba(p),
    "local": lambda p: (
        cal.SimilarityBinning(gate=False).fit(p, YES, features=P).calibrate(P[:, 0], features=P)
    ),
    "evaluate": lambda p: cal.evaluate(YES, p).after["log_loss"],
    "raw": lambda p: cal.evaluate(YES, TWO, raw=p).before["log_loss"],
    "measure": lambda p: cal.metrics.log_loss(YES, p),
    "diagram": lambda p: cal.diagrams.reliability_curve(YES, p).x,
}
OF_THREE = {
    "fit": lambda p: cal.Temperature().fit(p, Y).predict_proba(P),
    "predict": lambda p: cal.VectorScaling().fit(P, Y).predict_proba(p),
    "fitted": lambda p: cal.VectorScaling().fit(P, Y).to_fitted().predict_proba(p),
    "coded": lambda p: cal.CodedCalibrator(cal.Platt()).fit(p, Y).predict_proba(P),
    "local": lambda p: (
        cal.SimilarityBinning(gate=False).fit(p, Y, features=P).predict_proba(P, features=P)
    ),
    "evaluate": lambda p: cal.evaluate(Y, p).after["log_loss"],
    "raw": lambda p: cal.evaluate(Y, P, raw=p).before["log_loss"],
    "measure": lambda p: cal.metrics.brier(Y, p),
}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrationWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", OF_TWO)
def test_two_columns(what, kind):
    made, ask = KINDS[kind], OF_TWO[what]
    for names in (["no", "yes"], ["p_no", "p_yes"], ["x", "z"], ["z", "x"]):
        assert np.array_equal(ask(made(TWO, names)), ask(TWO))
    for names in (["yes", "no"], ["p_yes", "p_no"]):
        with pytest.raises(InputError, match="in this order"):
            ask(made(TWO[:, ::-1], names))


@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrationWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", OF_THREE)
def test_several_columns(what, kind):
    made, ask = KINDS[kind], OF_THREE[what]
    assert np.array_equal(ask(made(P, NAMES)), ask(P))
    with pytest.raises(InputError, match=r"pass frame\[\['a', 'b', 'c'\]\]"):
        ask(made(P[:, [2, 0, 1]], ["c", "a", "b"]))


def test_numbers_as_names_of_pandas_columns():
    y = (YES == "yes").astype(int)
    with pytest.raises(InputError, match="'0', '1' in this order"):
        cal.Platt().fit(pd.DataFrame({1: P[:, 0], 0: 1.0 - P[:, 0]}), y)


def test_measures_take_the_order_of_classes_where_it_is_given():
    swapped = pd.DataFrame({"yes": TWO[:, 1], "no": TWO[:, 0]})
    assert cal.metrics.log_loss(
        YES, swapped, classes=["yes", "no"], pos_label="yes"
    ) == pytest.approx(cal.metrics.log_loss(YES, TWO), rel=1e-15)


def test_labels_that_do_not_exclude_each_other():
    marks = pd.DataFrame(P[:, :2] > 0.3, columns=["u", "v"]).astype(int)
    scores = pd.DataFrame(P[:, :2], columns=["u", "v"])
    fitted = cal.MultiLabelCalibrator(cal.Platt()).fit(scores, marks)
    swapped = scores[["v", "u"]]
    for ask in (
        lambda: cal.MultiLabelCalibrator(cal.Platt()).fit(swapped, marks),
        lambda: fitted.predict_proba(swapped),
        lambda: fitted.to_fitted().predict_proba(swapped),
        lambda: cal.metrics.multilabel_measures(marks, swapped),
    ):
        with pytest.raises(InputError, match="'u', 'v' in this order"):
            ask()


def test_scores_of_a_function():
    def score(rows):
        return pd.DataFrame(rows, columns=["b", "a", "c"])

    with pytest.raises(InputError, match="'a', 'b', 'c' in this order"):
        cal.CalibratedClassifier(score, cal.Platt(), cv="prefit").fit(P[:, [1, 0, 2]], Y)


def test_names_that_say_nothing():
    frame = pd.DataFrame({"left": [0.1], "right": [0.9]})
    check_class_columns(frame, ["no", "yes"], "scores")
    check_class_columns([[0.1, 0.9]], ["no", "yes"], "scores")
    check_class_columns(frame, ["left", "right", "other"], "scores")


@pytest.mark.parametrize("roles", [{"score": "y"}, {"score": "p", "weight": "y"}])
def test_the_column_of_labels_has_no_second_role(roles, tmp_path):
    frame = pl.DataFrame({"p": [0.1, 0.4, 0.6, 0.9], "y": [0, 1, 0, 1]})
    frame.write_csv(tmp_path / "rows.csv")
    for rows in (frame, frame.lazy(), tmp_path / "rows.csv"):
        with pytest.raises(InputError, match="label must be different columns, but both"):
            cal.score_table(rows, label="y", **roles)
    with pytest.raises(InputError, match="label must be different columns, but both"):
        cal.evaluate(frame, "y", label="y")
