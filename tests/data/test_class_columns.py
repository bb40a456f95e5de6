"""Frames whose columns bear the names of the classes: another order is refused.

Those that bear the names of the fit: another order is brought into that of the fit.
A column of labels that is named for scores or weights, too, is refused.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant.data.columns import check_class_columns
from calibrant.errors import InputError
from calibrant.monitor import check_class_drift

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
    "batch": lambda p, names: pa.RecordBatch.from_arrays([pa.array(x) for x in p.T], names=names),
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
    fitted = cal.MultiLabelCalibrator(cal.Platt()).fit(P[:, :2], marks)
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


# --- the names of the fit -------------------------------------------------------------------------

FEATURES = pd.DataFrame(RNG.normal(size=(120, 2)), columns=["age", "income"])
SEVERAL = {
    "auto": cal.AutoCalibrator(),
    "vector": cal.VectorScaling(),
    "matrix": cal.MatrixScaling(),
    "dirichlet": cal.Dirichlet(),
    "structured": cal.StructuredScaling(),
    "temperature": cal.Temperature(),
    "ensemble": cal.EnsembleTemperature(),
    "top label": cal.TopLabelCalibrator(cal.Platt()),
    "coded": cal.CodedCalibrator(cal.Platt()),
    "pairs": cal.CodedCalibrator(cal.Platt(), code="all_pairs"),
    "similarity": cal.SimilarityBinning(gate=False),
}
BINARY = {
    "platt": cal.Platt(),
    "other side": cal.Isotonic(pos_label="no"),
    "auto": cal.AutoCalibrator(),
    "splits": cal.AutoCalibrator(cv=[(np.arange(60), np.arange(60, 120))]),
    "segments": cal.SegmentedCalibrator(cal.Platt()),
    "similarity": cal.SimilarityBinning(gate=False),
}


def beside(calibrator, order=("age", "income")):
    """What the calibrator needs beside the scores."""
    if isinstance(calibrator, cal.SimilarityBinning):
        return {"features": FEATURES[list(order)]}
    return {"segments": YES} if isinstance(calibrator, cal.SegmentedCalibrator) else {}


def same_in_any_order(calibrator, scores, y, tmp_path, *, kind):
    """Fit to a frame; the fit and its file must give the same for any order of its columns."""
    names = [f"x{j}" for j in range(scores.shape[1])]
    order, made = np.roll(np.arange(len(names)), 1), KINDS[kind]
    fitted = calibrator.fit(made(scores, names), y, **beside(calibrator))
    cal.save(fitted, tmp_path / "c.json")
    other = made(scores[:, order], [names[j] for j in order])
    for one in (fitted, cal.load(tmp_path / "c.json")):
        wanted = one.predict_proba(scores, **beside(calibrator))
        got = one.predict_proba(other, **beside(calibrator, ["income", "age"]))
        assert np.array_equal(got, wanted)
        assert np.array_equal(
            one.predict(other, **beside(calibrator)), one.predict(scores, **beside(calibrator))
        )
        unknown = made(scores, [*names[:-1], "z"])
        with pytest.raises(InputError, match=f"any order: '{names[-1]}' missing, 'z' unexpected"):
            one.predict_proba(unknown, **beside(calibrator))
    return fitted


@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrationWarning")
@pytest.mark.parametrize("what", SEVERAL)
def test_names_of_the_fit_tell_the_order_of_several_columns(what, tmp_path):
    kind = list(KINDS)[len(what) % len(KINDS)]
    same_in_any_order(SEVERAL[what], P, Y, tmp_path, kind=kind)


@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrationWarning")
@pytest.mark.parametrize("what", BINARY)
def test_names_of_the_fit_tell_the_order_of_two_columns(what, tmp_path):
    same_in_any_order(BINARY[what], TWO, YES, tmp_path, kind="pandas")


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_the_fit_in_every_kind_of_frame(kind, tmp_path):
    fitted = same_in_any_order(cal.VectorScaling(), P, Y, tmp_path, kind=kind)
    assert fitted.to_fitted().provenance["score_columns"] == ("x0", "x1", "x2")
    again = fitted.fit(P, Y)  # an array has no names: nothing is left of the others
    assert "score_columns" not in again.to_fitted().provenance
    frame = KINDS[kind](P[:, [1, 0, 2]], ["x1", "x0", "x2"])
    assert np.array_equal(again.predict_proba(frame), again.predict_proba(P[:, [1, 0, 2]]))


def test_labels_that_do_not_exclude_each_other_by_the_names_of_the_fit(tmp_path):
    marks = pd.DataFrame(P[:, :2] > 0.3, columns=["u", "v"]).astype(int)
    same_in_any_order(
        cal.MultiLabelCalibrator(cal.Platt()), P[:, :2], marks, tmp_path, kind="pandas"
    )


def test_whole_numbers_as_names_of_the_fit():
    fitted = cal.VectorScaling().fit(pd.DataFrame(P), Y)
    wanted = fitted.predict_proba(P)
    assert np.array_equal(fitted.predict_proba(pd.DataFrame(P)[[2, 0, 1]]), wanted)
    words = pd.DataFrame(P, columns=["u", "v", "w"])  # words say nothing beside numbers
    assert np.array_equal(fitted.predict_proba(words), wanted)
    boxed = cal.VectorScaling().fit(words.set_axis(list(np.array(["u", "v", "w"])), axis=1), Y)
    assert np.array_equal(boxed.predict_proba(words[["w", "u", "v"]]), wanted)


@pytest.mark.parametrize(
    "names",
    [
        pd.MultiIndex.from_product([["p"], ["s1", "s2", "s3"]]),
        [0.5, 1.0, 2.0],
        ["s1", "s2", 3],
        pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]),
    ],
    ids=["levels", "numbers", "mixed", "dates"],
)
def test_names_of_other_kinds_are_told_by_their_text(names, tmp_path):
    """A pivot makes names of several levels."""
    rng = np.random.default_rng(3)
    rows = rng.dirichlet([1, 2, 3], 200)
    frame = pd.DataFrame(rows, columns=names)
    c = cal.VectorScaling().fit(frame, rows.argmax(axis=1))
    cal.save(c, tmp_path / "c.json")
    for fitted in (c, cal.load(tmp_path / "c.json")):
        same = fitted.predict_proba(frame.iloc[:, [2, 0, 1]])
        assert np.array_equal(same, c.predict_proba(rows))
    with pytest.raises(InputError, match="the columns of the fit, in any order"):
        c.predict_proba(frame.set_axis(["u", "v", "w"], axis=1))


def test_names_of_the_classes_go_before_those_of_the_fit():
    fitted = cal.VectorScaling().fit(pd.DataFrame(P, columns=["x", "y", "z"]), Y)
    named = pd.DataFrame(P, columns=["p_a", "p_b", "p_c"])
    assert np.array_equal(fitted.predict_proba(named), fitted.predict_proba(P))
    with pytest.raises(InputError, match="'p_a', 'p_b', 'p_c' in this order"):
        fitted.predict_proba(named[["p_c", "p_a", "p_b"]])


@pytest.mark.parametrize("names", [["a", "b", "c"], ["p_a", "p_b", "p_c"]])
def test_names_of_the_fit_that_are_those_of_the_classes_may_come_in_any_order(names, tmp_path):
    frame = pd.DataFrame(P, columns=names)
    fitted = cal.VectorScaling().fit(frame, Y)
    cal.save(fitted, tmp_path / "c.json")
    for one in (fitted, cal.load(tmp_path / "c.json")):
        assert np.array_equal(one.predict_proba(frame[names[::-1]]), fitted.predict_proba(P))


def test_names_that_a_file_made_words_of_are_the_same_names():
    numbers = pd.DataFrame(P, columns=[3, 1, 2])
    words = numbers.rename(columns=str)  # as in Parquet, CSV and Polars
    for first, later in ((numbers, words), (words, numbers)):
        fitted = cal.VectorScaling().fit(first, Y)
        other = later.iloc[:, [2, 0, 1]]
        assert np.array_equal(fitted.predict_proba(other), fitted.predict_proba(P))


def test_files_that_know_no_names_are_read_by_place():
    fitted = cal.VectorScaling().fit(pd.DataFrame(P, columns=["x", "y", "z"]), Y).to_fitted()
    for known in (None, "xyz", ["x", "y"], ["x", "x", "y"], ["x", 1, "z"], {"x": 1}):
        document = fitted.to_dict()
        document["provenance"] |= {"score_columns": known}
        if known is None:
            del document["provenance"]["score_columns"]
        other = cal.Fitted.from_dict(document)
        frame = pd.DataFrame(P, columns=["z", "x", "y"])
        assert np.array_equal(other.predict_proba(frame), fitted.predict_proba(P))


def test_features_of_an_arrow_batch_go_by_name():
    fitted = cal.SimilarityBinning(gate=False).fit(P[:, 0], YES, features=FEATURES)
    batch = pa.RecordBatch.from_pandas(FEATURES[["income", "age"]])
    found = fitted.calibrate(P[:, 0], features=batch)
    assert np.array_equal(found, fitted.calibrate(P[:, 0], features=FEATURES))


def test_columns_named_in_another_order():
    scores = pd.DataFrame(P, columns=["x", "y", "z"])
    fitted = cal.VectorScaling().fit(scores, Y)
    for frame in (scores, pl.DataFrame(scores), pl.LazyFrame(P, schema=["x", "y", "z"])):
        made = cal.add_probabilities(fitted, frame, score=["z", "x", "y"])
        p = made.collect() if isinstance(made, pl.LazyFrame) else made
        assert np.allclose(
            p[[f"probability_{c}" for c in NAMES]], fitted.predict_proba(P), atol=1e-12
        )
    named = scores.set_axis(["p_a", "p_b", "p_c"], axis=1)
    p = cal.add_probabilities(fitted, named, score=["p_c", "p_a", "p_b"])
    assert np.array_equal(p[[f"probability_{c}" for c in NAMES]], fitted.predict_proba(P))
    assert cal.to_sql(fitted, column=["z", "x", "y"]) == cal.to_sql(fitted, column=["x", "y", "z"])
    assert cal.to_sql(fitted, column=["u", "v", "w"]) != cal.to_sql(fitted, column=["w", "v", "u"])


def test_names_of_the_fit_in_the_places_of_others_are_refused():
    fitted = cal.VectorScaling().fit(pd.DataFrame(P, columns=["x", "y", "z"]), Y)
    rows = pl.DataFrame({"x": P[:, 0], "y": P[:, 1], "w": P[:, 2]})
    with pytest.raises(InputError, match="but 'y' came in the place of 'x'"):
        cal.to_sql(fitted, column=["y", "x", "w"])
    with pytest.raises(InputError, match="but 'y' came in the place of 'x'"):
        cal.add_probabilities(fitted, rows, score=["y", "x", "w"])
    cal.add_probabilities(fitted, rows, score=["x", "y", "w"])


def test_numbers_as_names_go_by_place_only_where_they_count_up():
    fitted = cal.VectorScaling().fit(pd.DataFrame(P, columns=["x", "y", "z"]), Y)
    plain = pd.DataFrame(P)
    assert np.array_equal(fitted.predict_proba(plain), fitted.predict_proba(P))
    with pytest.raises(InputError, match="'x', 'y', 'z' missing, 2, 0, 1 unexpected"):
        fitted.predict_proba(plain[[2, 0, 1]])


def test_rows_that_are_judged_beside_a_calibrator():
    scores = pd.DataFrame(P, columns=["x", "y", "z"])
    fitted, other = cal.VectorScaling().fit(scores, Y), scores[["z", "x", "y"]]
    assert check_class_drift(fitted, other, Y) == check_class_drift(fitted, scores, Y)
    pages = [cal.calibration_report(s, Y, calibrator=fitted.to_fitted()) for s in (scores, other)]
    assert pages[0].verdict == pages[1].verdict
    pair = pd.DataFrame(TWO, columns=["x", "y"])
    platt, swapped = cal.Platt().fit(pair, YES), pair[["y", "x"]]
    assert cal.advise(swapped, YES, platt) == cal.advise(pair, YES, platt)
    first, second = (cal.Monitor(platt).update(YES, scores=s) for s in (pair, swapped))
    assert first == second


@pytest.mark.parametrize("kind", ["folds", "prefit", "frozen", "function", "ensemble"])
def test_rows_of_a_model_in_another_order(kind):
    X = pd.DataFrame(P, columns=["x", "y", "z"])
    Z = X[["z", "x", "y"]]
    model = LogisticRegression().fit(X, YES)
    more = {"cv": 3, "ensemble": kind == "ensemble", "decision": "model"}
    estimator = {"folds": None, "ensemble": None, "frozen": FrozenEstimator(model)}.get(kind, model)
    if kind in ("prefit", "function"):
        more = {"cv": "prefit"}
    if kind == "function":
        plain = LogisticRegression().fit(P, YES)
        estimator = lambda rows: plain.predict_proba(np.asarray(rows))[:, 1]  # noqa: E731
    fitted = cal.CalibratedClassifier(estimator, "platt", **more).fit(X, YES)
    assert np.array_equal(fitted.predict_proba(Z), fitted.predict_proba(X))
    assert np.array_equal(fitted.predict(Z), fitted.predict(X))
    if kind in ("prefit", "frozen"):  # the model knows the order of its columns
        again = cal.CalibratedClassifier(estimator, "platt", **more).fit(Z, YES)
        assert np.array_equal(again.predict_proba(Z), fitted.predict_proba(X))
    if kind == "function":  # which may pick columns as it likes
        fitted.predict_proba(X.set_axis(["u", "v", "w"], axis=1))
    else:
        with pytest.raises(InputError, match="X must have the columns of the fit"):
            fitted.predict_proba(X.set_axis(["x", "y", "w"], axis=1))


def test_rows_of_models_of_a_code_in_another_order():
    X = pd.DataFrame(P, columns=["x", "y", "z"])
    fitted = cal.CodedClassifier(calibrator="platt").fit(X, Y)
    assert np.array_equal(fitted.predict_proba(X[["z", "x", "y"]]), fitted.predict_proba(X))


# --- one column for two roles ---------------------------------------------------------------------


@pytest.mark.parametrize("roles", [{"score": "y"}, {"score": "p", "weight": "y"}])
def test_the_column_of_labels_has_no_second_role(roles, tmp_path):
    frame = pl.DataFrame({"p": [0.1, 0.4, 0.6, 0.9], "y": [0, 1, 0, 1]})
    frame.write_csv(tmp_path / "rows.csv")
    for rows in (frame, frame.lazy(), tmp_path / "rows.csv"):
        with pytest.raises(InputError, match="label must be different columns, but both"):
            cal.score_table(rows, label="y", **roles)
    with pytest.raises(InputError, match="label must be different columns, but both"):
        cal.evaluate(frame, "y", label="y")


def test_raw_scores_go_by_the_names_of_the_predictions():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 200)
    y = np.array([rng.choice(3, p=row) for row in p])
    raw = 0.3 * rng.dirichlet([1, 1, 1], 200) + 0.7 * p
    names = ["low", "mid", "high"]
    predictions, scores = pd.DataFrame(p, columns=names), pd.DataFrame(raw, columns=names)
    turned = scores[["high", "low", "mid"]]
    want = cal.evaluate(y, p, raw=raw, level=None).before
    assert cal.evaluate(y, predictions, raw=turned, level=None).before == want
    one, other = (cal.metrics.loss_difference(y, predictions, q) for q in (raw, turned))
    assert one.difference == other.difference


def test_two_columns_of_raw_scores_go_by_the_names_of_the_predictions():
    rng = np.random.default_rng(1)
    p, raw = rng.random(200), rng.random(200)
    y = (rng.random(200) < p).astype(int)
    predictions, scores = (pd.DataFrame({"no": 1 - q, "yes": q}) for q in (p, raw))
    want = cal.evaluate(y, p, raw=raw, level=None).before["log_loss"]
    for turned in (scores, scores[["yes", "no"]]):
        found = cal.evaluate(y, predictions, raw=turned, level=None).before["log_loss"]
        assert found == pytest.approx(want, rel=1e-12)
