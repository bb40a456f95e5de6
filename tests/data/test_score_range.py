"""Calibrators know which scores they are for: nothing else gets a number without a word."""

from __future__ import annotations

import inspect
import pickle
import warnings
from dataclasses import replace

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import calibrant as cal
from calibrant.cli import main
from calibrant.engines.apply import ApplyOptions
from calibrant.engines.open_engine import open_engine
from calibrant.maps import Identity, Logistic, Piecewise
from cases import CASES
from file_jobs import apply_file
from lazy_frames import KINDS, LAZY, frame
from saved import simulate, simulate_classes, simulate_features
from subjects import VECTORS, fitted, fitted_segments, fitted_vector, vector_rows

RNG = np.random.default_rng(0)
PERCENT = np.array([3.0, 23.9, 75.8, 0.4, 99.0, 12.0])
BAD = "must be probabilities in"


def read(result):
    """The rows of a frame of any kind."""
    return nw.from_native(result).lazy().collect("polars").to_native()


# --- every calibrator -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_probabilities_times_100_are_refused(name):
    c = fitted(name)
    assert c.score_range_.kind == "probability"
    for one in (c, c.to_fitted(), pickle.loads(pickle.dumps(c.to_fitted()))):
        for use in (one.calibrate, one.predict_proba, one.predict):
            with pytest.raises(
                cal.errors.InputError, match=rf"{BAD}.*5 of 6 are not.*row 0: 3\).*100"
            ):
                use(PERCENT)
            inside = np.clip(PERCENT, 0, 1)
            moved, same = use(PERCENT, on_range="clip"), use(inside, on_range="clip")
            assert (moved == same).all()
        assert (one.calibrate(PERCENT, on_range="allow") == c.map_(PERCENT)).all()
    with pytest.raises(
        cal.errors.ParameterError, match="on_range must be 'error' or 'clip' or 'allow'"
    ):
        c.calibrate([0.5], on_range="ignore")


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_margins_may_be_any_numbers(name):
    c = fitted(name, True)
    assert c.score_range_.kind == "number"
    new = np.linspace(-9, 9, 40)
    assert (c.calibrate(new) == c.map_(new)).all()
    with pytest.warns(cal.errors.RangeWarning, match="most scores lie beyond.*40 of 40.*above"):
        c.calibrate(new + 30)
    with pytest.warns(cal.errors.RangeWarning, match="most of them below"):
        c.to_fitted().predict_proba(new - 30)
    assert (c.calibrate(new + 30, on_range="allow") == c.map_(new + 30)).all()


@pytest.mark.parametrize("name", VECTORS)
def test_rows_of_several_classes(name):
    scores, _ = vector_rows(name)
    c = fitted_vector(name)
    probabilities = name == "labels" or "probabilities" in name
    assert c.score_range_.kind == ("probability" if probabilities else "number")
    for one in (c, c.to_fitted()):
        assert (one.predict_proba(scores) == c.map_(scores)).all()
        if probabilities:
            for use in (one.predict_proba, one.predict):
                with pytest.raises(cal.errors.InputError, match=f"{BAD}.*200 of 200"):
                    use(100 * scores)
        else:
            with pytest.warns(cal.errors.RangeWarning, match="most scores lie beyond"):
                one.predict_proba(100 * scores + 500)
        far = 100 * scores + 500
        assert (one.predict_proba(far, on_range="allow") == c.map_(far)).all()


def test_calibrators_of_segments_and_of_rows():
    s, y = simulate(60)
    features = simulate_features(60)
    segments = ["de"] * 6
    for one in (fitted_segments(), fitted_segments().to_fitted()):
        with pytest.raises(cal.errors.InputError, match=BAD):
            one.calibrate(PERCENT, segments=segments)
        assert len(one.predict(PERCENT, segments=segments, on_range="clip")) == 6
    similar = cal.SimilarityBinning(gate=False, k=5).fit(s, y, features=features)
    acp = cal.ACP(smoothing="laplace").fit(s, y)
    more = {"features": features[:6]}, {"lower": PERCENT - 1, "upper": PERCENT + 1}
    for c, known in zip((similar, acp), more, strict=True):
        for one in (c, c.to_fitted()):
            for use in (one.calibrate, one.predict_proba, one.predict):
                with pytest.raises(cal.errors.InputError, match=BAD):
                    use(PERCENT, **known)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cal.errors.CalibrationWarning)  # of empty bins
            assert len(c.calibrate(PERCENT, **known, on_range="clip")) == 6
    rows, codes = simulate_classes(60)
    several = cal.SimilarityBinning(gate=False, k=5).fit(rows, codes, features=features)
    assert several.score_range_.kind == "number"


def test_every_public_calibrator_has_the_option():
    for name in cal.__all__:
        one = getattr(cal, name)
        if not isinstance(one, type) or getattr(one, "takes_rows", False):
            continue
        if not hasattr(one, "to_fitted"):
            continue
        for method in ("calibrate", "predict_proba", "predict"):
            if hasattr(one, method):
                option = inspect.signature(getattr(one, method)).parameters["on_range"]
                assert option.kind is option.KEYWORD_ONLY
                assert option.default == "error", (name, method)


# --- the range ------------------------------------------------------------------------------------


def test_the_range_is_in_the_file(tmp_path):
    s, y = simulate(60)
    similar = cal.SimilarityBinning(gate=False, k=5).fit(s, y, features=simulate_features(60))
    for c in (cal.Platt().fit(s, y), similar, fitted_vector("labels"), fitted_segments()):
        cal.save(c, tmp_path / "c.json")
        loaded = cal.load(tmp_path / "c.json")
        assert loaded.score_range == c.score_range_
        assert loaded == c.to_fitted()
    assert isinstance(cal.load(tmp_path / "c.json"), cal.Fitted)


def test_tables_know_their_range():
    table = cal.ScoreTable.from_counts([-2, 0, 3], [3, 2, 1], [1, 2, 3])
    assert cal.Platt().fit_table(table).score_range_ == cal.data.ScoreRange("number", -2, 3)
    one = cal.ScoreTable.from_counts([0.5], [3], [1])
    assert cal.Isotonic().fit_table(one).score_range_ == cal.data.ScoreRange(
        "probability", 0.5, 0.5
    )


def test_rows_of_weight_zero_have_no_part_in_it():
    c = cal.Platt().fit([0.1, 0.4, 0.6, 0.9, 40], [0, 1, 0, 1, 1], [1, 1, 1, 1, 0])
    assert c.score_range_ == cal.data.ScoreRange("probability", 0.1, 0.9)


@given(
    st.lists(st.floats(-1e308, 1e308), min_size=1, max_size=6),
    st.sampled_from([True, False]),
)
def test_no_score_is_left_out(scores, probabilities):
    found = cal.data.ScoreRange.between(min(scores), max(scores), probabilities=probabilities)
    assert found.low <= min(scores) <= max(scores) <= found.high
    inside = min(scores) >= 0 and max(scores) <= 1
    assert (found.kind == "probability") == (inside and probabilities)
    assert cal.data.ScoreRange.from_dict(found.to_dict()) == found


def test_a_few_scores_beyond_are_nothing_to_talk_about():
    c = cal.Platt().fit(np.linspace(0.2, 0.8, 50), np.arange(50) % 2)
    margins = cal.Platt().fit(np.linspace(-3, 3, 50), np.arange(50) % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", cal.errors.RangeWarning)
        c.calibrate([0.81])
        c.calibrate([0.9, 0.95, 0.99])
        c.calibrate(np.append(np.full(10, 0.9), np.full(10, 0.5)))  # half, not most
        margins.calibrate([4.0])
    with pytest.warns(cal.errors.RangeWarning, match="10 of 12"):
        c.calibrate(np.append(np.full(10, 0.9), [0.5, 0.5]))
    with pytest.warns(cal.errors.RangeWarning, match="1 of 1"):
        margins.calibrate([31.0])


APPLIED = ApplyOptions("s")


def test_the_warning_points_to_who_called(tmp_path):
    c = cal.Platt().fit(np.linspace(-3, 3, 50), np.arange(50) % 2)
    several = fitted_vector("vector")
    far, rows = np.full(20, 40.0), 100 * np.ones((20, len(several.classes_)))
    pl.DataFrame({"s": far}).write_csv(tmp_path / "in.csv")
    uses = [
        *(lambda f=f: f(far) for one in (c, c.to_fitted())
          for f in (one.calibrate, one.predict_proba, one.predict)),
        *(lambda one=one: one.predict(rows) for one in (several, several.to_fitted())),
        *(lambda kind=kind: cal.add_probabilities(c, frame(kind, {"s": far}), score="s")
          for kind in KINDS),
        lambda: engine.apply(c.to_fitted(), [tmp_path / "in.csv"], tmp_path / "o.csv", APPLIED),
    ]  # fmt: skip
    for use in uses:
        with pytest.warns(cal.errors.RangeWarning) as found, open_engine() as engine:
            use()
        assert [one.filename for one in found] == [__file__]


def test_updates_and_other_rates_keep_the_range():
    c = cal.Platt().fit(*simulate(60)).to_fitted()
    assert cal.adjust_prior(c, target_rate=0.1).score_range == c.score_range
    assert replace(c, method="x").score_range == c.score_range


def test_maps_that_take_a_logit_are_of_probabilities_without_being_told():
    for map_ in (Identity(), Logistic(0.0, (("z", 1.0),)), Piecewise.step([0], [0, 1], "logit")):
        with pytest.raises(cal.errors.InputError, match=BAD):
            cal.Fitted(map_, (0, 1), 1).calibrate([40.0])
    for map_ in (Logistic(0.0, (("x", 1.0),)), Piecewise.step([0.3, 0.5], [0, 0.4, 1])):
        assert cal.Fitted(map_, (0, 1), 1).calibrate([40.0]).tolist() == map_([40.0]).tolist()


# --- models ---------------------------------------------------------------------------------------


def test_margins_of_a_model_are_no_probabilities_wherever_they_lie():
    X = RNG.normal(0, 1, (200, 2))
    y = (X[:, 0] + RNG.normal(0, 1, 200) > 0).astype(int)
    tame = LinearSVC(C=1e-4).fit(X, y)
    shifted = lambda rows: 0.5 + 0.01 * tame.decision_function(rows)  # noqa: E731
    model = cal.CalibratedClassifier(shifted, cal.Platt(), cv="prefit").fit(X, y)
    assert model.calibrator_.score_range_.probabilities
    assert model.predict_proba(1e5 * X).shape == (200, 2)  # the model's own: no question
    small = np.where(np.arange(200) % 2, 1e-3, 0.9)[:, None] * np.ones((1, 2))
    svm = cal.CalibratedClassifier(LinearSVC(), cal.Platt(), cv=2).fit(
        small + RNG.normal(0, 1e-4, (200, 2)), np.arange(200) % 2
    )
    assert svm.to_fitted().score_range.kind == "number"
    logistic = cal.CalibratedClassifier(LogisticRegression(), cal.Platt()).fit(X, y)
    assert logistic.to_fitted().score_range.kind == "probability"


# --- frames and files -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["platt", "isotonic", "segments"])
def test_frames_of_percentages_are_refused(kind, name):
    c = fitted_segments() if name == "segments" else fitted(name)
    scores = np.append(PERCENT, [0.2, 0.7])
    rows = frame(kind, {"i": range(8), "s": scores, "g": ["de"] * 8})
    more = {"score": "s", "segment": "g" if name == "segments" else None}
    for one in (c, c.to_fitted()):
        for on_missing in ("error", "null"):
            with pytest.raises(
                cal.errors.InputError, match=r"score column 's' must be prob.*5 of 8"
            ):
                cal.add_probabilities(one, rows, on_missing=on_missing, **more)
    segments = {"segments": ["de"] * 8} if name == "segments" else {}
    for word in ("clip", "allow"):
        wanted = c.calibrate(scores, on_range=word, **segments)
        found = read(cal.add_probabilities(c, rows, on_range=word, **more)).sort("i")
        assert np.abs(found["probability"].to_numpy() - wanted).max() < 1e-12
        assert (found["s"].to_numpy() == scores).all()  # what came is as it was
    with pytest.raises(cal.errors.ParameterError, match="on_range"):
        cal.add_probabilities(c, rows, on_range="x", **more)


@pytest.mark.parametrize("kind", KINDS)
def test_frames_beyond_the_fit_are_warned_of(kind):
    c = fitted("isotonic", True)
    rows = frame(kind, {"s": np.linspace(30, 60, 20)})
    with pytest.warns(cal.errors.RangeWarning, match="20 of 20"):
        cal.add_probabilities(c, rows, score="s")
    with warnings.catch_warnings():
        warnings.simplefilter("error", cal.errors.RangeWarning)
        cal.add_probabilities(c, rows, score="s", on_range="allow")
    missing = frame(kind, {"s": pl.Series([None, 0.5, 0.2] * 5)})
    found = read(cal.add_probabilities(fitted("platt"), missing, score="s", on_missing="null"))
    assert found["probability"].null_count() == 5


@pytest.mark.parametrize("kind", LAZY)
def test_lazy_frames_are_not_run_where_nothing_can_be_refused(kind, monkeypatch):
    def fail(*_):
        raise AssertionError("the frame was run")

    far = frame(kind, {"s": np.linspace(30, 60, 20)})
    if kind == "polars":
        far = far.map_batches(fail, schema={"s": pl.Float64})
    monkeypatch.setattr(nw.LazyFrame, "collect", fail)
    with warnings.catch_warnings():
        warnings.simplefilter("error", cal.errors.RangeWarning)
        cal.add_probabilities(
            fitted("platt", True), far, score="s", on_missing="null"
        )  # any margin is right
        for word in ("clip", "allow"):
            cal.add_probabilities(fitted("platt"), far, score="s", on_missing="null", on_range=word)
    for more in ({}, {"on_missing": "null"}):
        with pytest.raises(AssertionError, match="was run"):
            cal.add_probabilities(fitted("platt"), far, score="s", **more)


def test_bare_maps_are_functions_of_any_number():
    rows, bare = pl.LazyFrame({"s": [1.5]}), Logistic(0.0, (("z", 1.0),))
    assert (
        cal.add_probabilities(bare, rows, score="s").collect()["probability"][0] == bare([1.5])[0]
    )
    with pytest.raises(cal.errors.InputError, match=BAD):  # old files know no more than their map
        cal.add_probabilities(cal.Fitted(bare, (0, 1), 1), rows, score="s")


def test_files_of_percentages_are_refused(tmp_path, capsys):
    c = fitted("platt")
    cal.save(c, tmp_path / "c.json")
    (tmp_path / "in.csv").write_text("s\n" + "\n".join(map(str, PERCENT)) + "\n")
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    with pytest.raises(
        cal.errors.InputError, match=r"5 of 6 rows are not \(first: '3.0' in data row 1.*on_range"
    ):
        apply_file(c.to_fitted(), [source], out, score="s")
    assert not out.exists()
    for word in ("clip", "allow"):
        apply_file(c.to_fitted(), [source], out, score="s", on_range=word)
        wanted = c.calibrate(PERCENT, on_range=word)
        assert pl.read_csv(out)["probability"].to_list() == wanted.tolist()
        out.unlink()
    command = ["apply", str(tmp_path / "c.json"), str(source), "-o", str(out), "-s", "s"]
    with pytest.raises(SystemExit) as stopped:
        main(command)
    assert stopped.value.code == 2
    assert "must be probabilities in" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--on-range", "clip"])
    assert stopped.value.code == 0
    assert len(pl.read_csv(out)) == 6


def test_files_beyond_the_fit_are_warned_of(tmp_path):
    c = fitted("isotonic", True).to_fitted()
    pd.DataFrame({"s": np.linspace(30, 60, 50)}).to_csv(tmp_path / "in.csv", index=False)
    with pytest.warns(cal.errors.RangeWarning, match="50 of 50"):
        apply_file(c, [tmp_path / "in.csv"], tmp_path / "out.csv", score="s")


# --- exports --------------------------------------------------------------------------------------


def test_exports_say_which_scores_they_are_for():
    for margins, words in (
        (False, "probabilities in [0, 1] (it was fitted"),
        (True, "numbers (it was"),
    ):
        c = fitted("isotonic", margins)
        known = c.score_range_
        span = f"{known.low:.6g} to {known.high:.6g}"
        texts = [
            cal.to_sql(c),
            cal.to_sql(c, form="lookup"),
            cal.to_python(c),
            str({p.key: p.value for p in cal.to_onnx(c).metadata_props}),
        ]
        for text in texts:
            flat = " ".join(text.replace("--", " ").split())
            assert words in flat
            assert span in flat
        assert f'"kind": "{known.kind}"' in cal.to_json(c)
