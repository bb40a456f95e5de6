"""What both local calibrators share: files, the wrapper around a model, and the contract."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import calibrant as cal


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(600, n_features=5, flip_y=0.1, random_state=3)
    return X, y


@pytest.fixture(scope="module")
def scores(rows):
    X, y = rows
    return GaussianNB().fit(X[:200], y[:200]).predict_proba(X)[:, 1]


@pytest.fixture(scope="module")
def sba(rows, scores):
    X, y = rows
    return cal.SimilarityBinning(gate=False, k=7).fit(scores[:300], y[:300], features=X[:300])


@pytest.fixture(scope="module")
def acp(rows, scores):
    return cal.ACP().fit(scores[:300], rows[1][:300])


def _interval(scores):
    return {"lower": np.maximum(scores - 0.1, 0.0), "upper": np.minimum(scores + 0.1, 1.0)}


# --- files --------------------------------------------------------------------------------------


def test_saved_and_loaded_they_give_the_same_numbers(rows, scores, sba, acp, tmp_path):
    X, _ = rows
    known = {"features": X[300:]}, _interval(scores[300:])
    for c, row in zip((sba, acp), known, strict=True):
        path = tmp_path / f"{type(c).__name__}.json"
        cal.save(c, path)
        loaded = cal.load(path)
        assert loaded == c.to_fitted()
        assert (
            loaded.predict_proba(scores[300:], **row) == c.predict_proba(scores[300:], **row)
        ).all()
        assert (loaded.calibrate(scores[300:], **row) == c.calibrate(scores[300:], **row)).all()
        assert (loaded.predict(scores[300:], **row) == c.predict(scores[300:], **row)).all()
        assert loaded.method == type(c).__name__
        assert loaded.provenance["rows"] == 300
        cal.save(loaded, tmp_path / "again.json")
        assert cal.load(tmp_path / "again.json") == loaded
        assert b"pickle" not in path.read_bytes()
        assert pickle.loads(pickle.dumps(loaded)) == loaded


def test_a_second_save_replaces_both_files(acp, scores, rows, tmp_path):
    path = tmp_path / "c.json"
    cal.save(acp, path)
    (first,) = tmp_path.glob("*.npz")
    cal.save(acp, path)
    assert list(tmp_path.glob("*.npz")) == [first]
    other = cal.ACP().fit(scores[:100], rows[1][:100])
    cal.save(other, path)
    (second,) = tmp_path.glob("*.npz")
    assert second != first
    assert cal.load(path) == other.to_fitted()
    assert {file.suffix for file in tmp_path.iterdir()} == {".json", ".npz"}


def test_files_of_one_stem_do_not_share_their_arrays(acp, scores, rows, tmp_path):
    cal.save(acp, tmp_path / "c.json")
    cal.save(acp, tmp_path / "c.v2")
    other = cal.ACP().fit(scores[:100], rows[1][:100])
    cal.save(other, tmp_path / "c.json")
    assert cal.load(tmp_path / "c.v2") == acp.to_fitted()
    cal.save(cal.Platt().fit(scores, rows[1]), tmp_path / "c.json")
    assert {f.name for f in tmp_path.iterdir() if f.name.startswith("c.json")} == {"c.json"}
    assert cal.load(tmp_path / "c.v2") == acp.to_fitted()


def test_an_interrupted_save_leaves_the_old_pair(acp, scores, rows, tmp_path, monkeypatch):
    path = tmp_path / "c.json"
    cal.save(acp, path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("calibrant.fitting.files._write_json", stop)
    with pytest.raises(KeyboardInterrupt):
        cal.save(cal.ACP().fit(scores[:100], rows[1][:100]), path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    with pytest.raises(KeyboardInterrupt):
        cal.save(acp, path)  # the same arrays: they are still needed
    assert cal.load(path) == acp.to_fitted()


def test_a_calibrator_of_another_kind_takes_over_the_name(acp, scores, rows, tmp_path):
    path = tmp_path / "c.json"
    cal.save(cal.Platt().fit(scores, rows[1]), path)
    cal.save(acp, path)
    assert cal.load(path) == acp.to_fitted()
    stranger = tmp_path / "mine.npz"
    stranger.write_bytes(b"not ours")
    document = json.loads(path.read_text())
    document["arrays"]["file"] = "mine.npz"  # a file that save has not named
    path.write_text(json.dumps(document))
    cal.save(acp, path)
    assert stranger.read_bytes() == b"not ours"


def _change(path, **changes):
    document = json.loads(path.read_text())
    document.update(changes)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 3}, "reads up to 2"),
        ({"version": "1"}, "must carry a format version"),
        ({"classes": [0, 1, 2], "pos_label": None}, "classes must be two labels"),
        ({"pos_label": 7}, "with pos_label among them"),
        ({"map": None}, "must be an object with a 'kind'"),
        ({"map": {"kind": "magic", "version": 1}}, "unknown kind of map 'magic'"),
        ({"map": {"kind": "bins", "version": 9}}, "reads up to 1"),
        ({"map": {"kind": "bins", "version": 1}}, "damaged"),
        ({"map": {"kind": "identity", "version": 1}}, "its map has none"),
        ({"arrays": None}, "names no file of arrays"),
        ({"arrays": {"file": "../c.npz", "sha256": ""}}, "names no file of arrays"),
        ({"arrays": {"file": "/etc/passwd", "sha256": ""}}, "names no file of arrays"),
        ({"arrays": {"file": "gone.npz", "sha256": ""}}, "there is no such file. Copy both"),
        ({"params": 3}, "'params' is missing"),
    ],
)
def test_damaged_files_are_refused(acp, tmp_path, changes, words):
    path = tmp_path / "c.json"
    cal.save(acp, path)
    _change(path, **changes)
    with pytest.raises(cal.errors.InputError, match=words):
        cal.load(path)


def _put(path, content):
    (beside,) = path.parent.glob("*.npz")
    beside.write_bytes(content)
    _change(path, arrays={"file": beside.name, "sha256": hashlib.sha256(content).hexdigest()})


def test_arrays_are_checked_and_never_executed(acp, tmp_path):
    path = tmp_path / "c.json"
    cal.save(acp, path)
    (beside,) = tmp_path.glob("*.npz")
    good = beside.read_bytes()
    beside.write_bytes(good + b"!")
    with pytest.raises(cal.errors.InputError, match="checksum differs"):
        cal.load(path)
    for write, words in (
        (lambda s: np.savez_compressed(s, scores=np.zeros(9)), "not compressed"),
        (lambda s: np.savez(s, scores=np.array([print], dtype=object)), "does not hold arrays"),
        (lambda s: s.write(b"PK nonsense"), "does not hold arrays"),
        (lambda s: np.savez(s, other=np.zeros(9)), "damaged"),
    ):
        stream = io.BytesIO()
        write(stream)
        _put(path, stream.getvalue())
        with pytest.raises(cal.errors.InputError, match=words):
            cal.load(path)
    _put(path, good)
    assert cal.load(path) == acp.to_fitted()


def test_loading_and_applying_intervals_needs_no_scikit_learn(acp, tmp_path):
    cal.save(acp, tmp_path / "c.json")
    code = (
        "import sys, calibrant as cal; c = cal.load(sys.argv[1]);"
        "p = c.calibrate([.5], lower=[.3], upper=[.7]); print(p[0]);"
        "assert not {'sklearn', 'numba', 'pandas'} & set(sys.modules), sorted(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "c.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == acp.calibrate([0.5], lower=[0.3], upper=[0.7])[0]


@pytest.mark.full
def test_the_command_line_shows_them_and_says_why_it_cannot_apply_them(sba, tmp_path):
    cal.save(sba, tmp_path / "c.json")
    (tmp_path / "new.csv").write_text("s\n0.5\n")
    run = [sys.executable, "-m", "calibrant.cli"]
    shown = subprocess.run(
        [*run, "show", str(tmp_path / "c.json")], capture_output=True, text=True, check=True
    )
    assert "SimilarityBinning" in shown.stdout
    assert "Apply it" not in shown.stdout
    paths = (str(tmp_path / "c.json"), str(tmp_path / "new.csv"))
    done = subprocess.run(
        [*run, "apply", *paths, "--score", "s", "-o", str(tmp_path / "out.csv")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "needs more of each row than its score" in " ".join(done.stderr.split())
    assert not (tmp_path / "out.csv").exists()


def test_evaluated_and_reported_like_any_other(rows, scores, sba, acp):
    X, y = rows
    known = {"features": X[300:]}, _interval(scores[300:])
    for c, row in zip((sba, acp), known, strict=True):
        p = c.calibrate(scores[300:], **row)
        found = cal.evaluate(y[300:], p, raw=scores[300:])
        assert found.after["brier"] == cal.metrics.brier(y[300:], p)
        page = cal.calibration_report(
            scores[300:], y[300:], calibrator={type(c).__name__: p}
        ).to_html()
        assert type(c).__name__ in page
        assert f"{found.after['log_loss']:.4f}" in page or "∞" in page
        assert cal.diagrams.reliability_curve(y[300:], p).total == 300


# --- around a model -----------------------------------------------------------------------------


def test_similarity_binning_gets_the_rows_as_features(rows):
    X, y = rows
    model = cal.CalibratedClassifier(
        GaussianNB(), cal.SimilarityBinning(gate=False), cv=0.5, random_state=0
    )
    model.fit(X, y)
    p = model.predict_proba(X[:50])
    s = model.estimator_.predict_proba(X[:50])[:, 1]
    assert (p == model.calibrator_.predict_proba(s, features=X[:50])).all()
    assert model.calibrator_.k == 10
    assert np.isclose(p.sum(axis=1), 1.0).all()


@pytest.mark.parametrize("options", [{}, {"ensemble": True}, {"cv": "train"}, {"cv": 0.3}])
@pytest.mark.parametrize(
    "make", [lambda: cal.SimilarityBinning(gate=False, k=5), cal.ACP, lambda: cal.ACP(gate=False)]
)
@pytest.mark.filterwarnings("ignore:.*interval.*no calibration score")
def test_every_kind_of_cv_and_the_contract(rows, options, make):
    X, y = rows
    labels = np.array(["no", "yes"])[y]
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    model = cal.CalibratedClassifier(LogisticRegression(), make(), random_state=0, **options)
    model.fit(X, labels, sample_weight=weight)
    p = model.predict_proba(X)
    assert p.shape == (600, 2)
    assert ((p >= 0) & (p <= 1)).all()
    assert (model.predict(X) == labels).mean() > 0.8
    assert (clone(model).fit(X, labels, sample_weight=weight).predict_proba(X) == p).all()
    assert (pickle.loads(pickle.dumps(model)).predict_proba(X) == p).all()


@pytest.mark.parametrize(
    "make", [lambda: cal.SimilarityBinning(gate=False, k=5), cal.ACP, lambda: cal.ACP(gate=False)]
)
@pytest.mark.filterwarnings("ignore:.*interval.*no calibration score")
def test_the_positive_label_only_names_the_columns(rows, make):
    X, y = rows
    one = cal.CalibratedClassifier(LogisticRegression(), make()).fit(X, y)
    other = cal.CalibratedClassifier(LogisticRegression(), make().set_params(pos_label=0)).fit(X, y)
    assert np.allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-12)
    assert np.allclose(one.calibrate(X), 1.0 - other.calibrate(X), atol=1e-12)
    assert (other.pos_label_, one.pos_label_) == (0, 1)


def test_similarity_binning_takes_many_classes_at_once():
    X, y = make_classification(
        500, n_features=6, n_informative=4, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    labels = np.array(["a", "b", "c"])[y]
    model = cal.CalibratedClassifier(GaussianNB(), cal.SimilarityBinning(gate=False, k=8)).fit(
        X, labels
    )
    p = model.predict_proba(X)
    assert p.shape == (500, 3)
    assert np.allclose(p.sum(axis=1), 1.0)
    assert (model.predict(X) == labels).mean() > 0.8
    with pytest.raises(cal.errors.InputError, match="ACP calibrates two classes, but 3 came"):
        cal.CalibratedClassifier(LogisticRegression(), cal.ACP()).fit(X, labels)


def test_frames_with_words_go_through(rows):
    X, y = rows
    frame = pd.DataFrame({"word": np.where(X[:, 0] > 0, "up", "down"), "number": X[:, 1]})
    base = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    model = cal.CalibratedClassifier(base, cal.SimilarityBinning(gate=False)).fit(frame, y)
    assert model.predict_proba(frame).shape == (600, 2)
    with pytest.raises((cal.errors.InputError, ValueError), match=r"number|word"):
        model.predict_proba(frame[["word"]])


def test_the_calibrator_of_the_models_scores_is_saved(rows, tmp_path):
    X, y = rows
    model = cal.CalibratedClassifier(
        GaussianNB(), cal.SimilarityBinning(gate=False), cv=0.5, random_state=0
    )
    cal.save(model.fit(X, y).to_fitted(), tmp_path / "c.json")
    loaded = cal.load(tmp_path / "c.json")
    s = model.estimator_.predict_proba(X)
    assert (loaded.predict_proba(s, features=X) == model.predict_proba(X)).all()
    assert loaded.provenance["model"] == "GaussianNB"
    assert loaded.provenance["input"] == "predict_proba"


@pytest.mark.filterwarnings("ignore:.*interval.*no calibration score")
def test_intervals_come_from_the_rows_that_the_model_was_fitted_on(rows):
    X, y = rows
    split = [(np.arange(400), np.arange(400, 600))]
    bins = cal.ACP(gate=False)
    model = cal.CalibratedClassifier(LogisticRegression(), bins, cv=split, ensemble=True).fit(X, y)
    member = model.members_[0]
    lower, upper = cal.prediction_interval(member.estimator, X, train=(X[:400], y[:400]))
    s = member.estimator.predict_proba(X)[:, 1]
    expected = cal.ACP().fit(s[400:], y[400:]).predict_proba(s, lower=lower, upper=upper)
    assert np.allclose(model.predict_proba(X), expected)


@pytest.mark.filterwarnings("ignore:.*interval.*no calibration score")
def test_a_fitted_forest_needs_no_training_rows_but_a_regression_does(rows):
    X, y = rows
    forest = RandomForestClassifier(50, min_samples_leaf=10, random_state=0).fit(X[:300], y[:300])
    model = cal.CalibratedClassifier(forest, cal.ACP(), cv="prefit").fit(X[300:], y[300:])
    assert cal.metrics.auc(y, model.calibrate(X)) > 0.8
    line = LogisticRegression().fit(X[:300], y[:300])
    with pytest.raises(cal.errors.ParameterError, match="interval="):
        cal.CalibratedClassifier(line, cal.ACP(), cv="prefit").fit(X[300:], y[300:])


# --- where scores come from ---------------------------------------------------------------------


def test_boosting_is_calibrated_by_its_raw_score(rows):
    X, y = rows
    booster = cal.boosting.AdaBoost("tree", n_estimators=30, random_state=0)
    model = cal.CalibratedClassifier(booster, cal.Isotonic(), cv=3).fit(X, y)
    f = model.estimator_.raw_score(X)
    assert (model.calibrate(X) == model.calibrator_.calibrate(f)).all()
    assert len(np.unique(f)) > 10 * len(np.unique(model.estimator_.predict_proba(X)[:, 1].round(9)))
    other = cal.CalibratedClassifier(booster, cal.Isotonic(pos_label=0), cv=3).fit(X, y)
    assert np.allclose(other.calibrate(X), 1.0 - model.calibrate(X), atol=0.05)


def test_logistic_correction_gets_the_sum_of_votes(rows):
    X, y = rows
    booster = cal.boosting.AdaBoost("stump", n_estimators=30, random_state=0)
    model = cal.CalibratedClassifier(booster, cal.LogisticCorrection(), cv="train").fit(X, y)
    assert np.allclose(model.predict_proba(X), model.estimator_.predict_proba(X), atol=1e-15)
    theirs = AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=1), n_estimators=30, random_state=0
    )
    wrapped = cal.CalibratedClassifier(
        theirs, cal.LogisticCorrection(), cv="train", response_method=cal.boosting.boosting_score
    ).fit(X, y)
    F = cal.boosting.boosting_score(wrapped.estimator_, X)
    assert np.allclose(wrapped.calibrate(X), 1.0 / (1.0 + np.exp(-2.0 * F)))
    assert not np.allclose(F, wrapped.estimator_.decision_function(X))


def test_a_function_may_give_the_scores(rows):
    X, y = rows
    score = lambda model, rows: model.predict_log_proba(rows)[:, 1]  # noqa: E731
    model = cal.CalibratedClassifier(GaussianNB(), cal.Platt(), response_method=score).fit(X, y)
    s = model.estimator_.predict_log_proba(X)[:, 1]
    assert (model.calibrate(X) == model.calibrator_.calibrate(s)).all()
    assert model.to_fitted().provenance["input"] == "function"
    with pytest.raises(cal.errors.InputError, match="Leave pos_label out"):
        cal.CalibratedClassifier(GaussianNB(), cal.Platt(pos_label=0), response_method=score).fit(
            X, y
        )
    with pytest.raises(
        cal.errors.ParameterError, match="response_method of CalibratedClassifier must be"
    ):
        cal.CalibratedClassifier(GaussianNB(), response_method="magic").fit(X, y)
