"""Similarity binning: its exact twin, its promises, its doors and its files."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import calibrant as cal
from calibrant import SimilarityBinning
from calibrant.fitting.fitted import Fitted
from calibrant.methods.similarity import neighbours as distance
from calibrant.methods.similarity import neighbours as nearest_rows
from calibrant.methods.similarity import similarity as choose_k
from calibrant.methods.similarity.similarity import mutual_information
from calibrant.rules.base import RowInputs, rule_from_dict
from twins import local as naive

WORDS = ("a", "b", "c")
NUMBERS = st.one_of(
    st.integers(-2, 3).map(float),
    st.integers(0, 8).map(lambda v: 1000 + v / 8),
    st.floats(-3, 3).map(lambda v: round(v, 2)),
)
WEIGHTS = st.sampled_from([0.0, 0.5, 1.0, 1.0, 2.0])
OPTIONS = {
    "neighbour_weights": st.sampled_from(["uniform", "distance"]),
    "metric": st.sampled_from(["ibk", "manhattan"]),
    "smoothing": st.sampled_from(["none", "ibk"]),
}


def table(rows, columns):
    """Rows as an array of boxed values, also where there are none."""
    array = np.empty((len(rows), columns), dtype=object)
    for i, row in enumerate(rows):
        array[i] = row
    return array


@st.composite
def problems(draw, weight=WEIGHTS, most=30):
    """Calibration rows, queries and options."""
    nominal = draw(st.lists(st.booleans(), max_size=3))
    classes = draw(st.sampled_from([2, 2, 3]))
    n, m = draw(st.integers(2, most)), 3
    columns = [
        st.one_of(st.none(), *[st.sampled_from(WORDS) if word else NUMBERS] * 4) for word in nominal
    ]
    row = st.tuples(*columns).map(list)
    columns_of_scores = 1 if classes == 2 else classes
    quarter = st.one_of(st.integers(0, 4).map(lambda v: v / 4), st.floats(0, 1).map(_round))
    score = st.lists(quarter, min_size=columns_of_scores, max_size=columns_of_scores)
    rows = draw(st.lists(row, min_size=n, max_size=n))
    for j, word in enumerate(nominal):
        if rows[0][j] is None:
            rows[0][j] = "a" if word else 1.0
    w = draw(st.lists(weight, min_size=n, max_size=n))
    w[0] = max(w[0], 1.0)
    options = {name: draw(values) for name, values in OPTIONS.items()}
    return {
        "nominal": nominal,
        "classes": classes,
        "rows": rows,
        "scores": draw(st.lists(score, min_size=n, max_size=n)),
        "y": draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n)),
        "w": w,
        "queries": draw(st.lists(row, min_size=m, max_size=m)),
        "query_scores": draw(st.lists(score, min_size=m, max_size=m)),
        "k": draw(st.integers(1, max(1, min(6, int(sum(w)))))),
        "options": options,
    }


def _round(value):
    return round(value, 3)


def as_scores(scores):
    array = np.array(scores)
    return array[:, 0] if array.shape[1] == 1 else array


def fitted(p, **changes):
    """The calibrator of a problem."""
    columns = len(p["nominal"])
    given_ = {"classes": list(range(p["classes"])), "k": p["k"], **p["options"], **changes}
    given_["weights"] = "counts"
    c = SimilarityBinning(gate=False, **given_)
    features = table(p["rows"], columns)
    return c.fit(as_scores(p["scores"]), p["y"], features=features, sample_weight=p["w"])


def predicted(c, p):
    features = table(p["queries"], len(p["nominal"]))
    return c.predict_proba(as_scores(p["query_scores"]), features=features)


def expected(p, **changes):
    names = ("rows", "scores", "y", "w", "queries", "query_scores")
    given_ = {"nominal": p["nominal"], "classes": p["classes"], "k": p["k"], **p["options"]}
    return np.array(naive.similarity_binning(*(p[name] for name in names), **given_, **changes))


# --- the twin -----------------------------------------------------------------------------------


@given(problems(most=20))
def test_equals_its_exact_twin(p):
    got = predicted(fitted(p), p)
    np.testing.assert_allclose(got, expected(p), rtol=0, atol=1e-11)
    np.testing.assert_allclose(got.sum(axis=1), 1, atol=1e-12)


@given(problems(most=20), st.data())
def test_equals_its_twin_with_attribute_weights_and_without_scores(p, data):
    weights = data.draw(
        st.lists(
            st.sampled_from([0.0, 0.5, 1.0, 3.0]),
            min_size=len(p["nominal"]),
            max_size=len(p["nominal"]),
        )
    )
    use_scores = data.draw(st.booleans()) or not any(weights)
    changes = {"attribute_weights": weights, "use_scores": use_scores}
    got = predicted(fitted(p, **changes), p)
    np.testing.assert_allclose(got, expected(p, **changes), rtol=0, atol=1e-11)


def random_rows(rng, n, *, gaps, levels=(2, 5), numbers=3, decimals=1):
    """A frame with ties: rounded numbers, words, and missing values."""
    frame = {f"x{j}": np.round(rng.normal(size=n), decimals) for j in range(numbers)}
    for j, m in enumerate(levels):
        frame[f"c{j}"] = np.array([f"v{i}" for i in range(m)], dtype=object)[rng.integers(0, m, n)]
    for column in frame.values():
        column[rng.random(n) < gaps] = None if column.dtype == object else np.nan
    return pd.DataFrame(frame)


CASES = {
    "complete": {"gaps": 0.0},
    "a tree": {"gaps": 0.0, "levels": (2,), "numbers": 3},
    "gaps": {"gaps": 0.1},
    "gaps in words": {"gaps": 0.1, "numbers": 0, "levels": (2, 3, 5)},
    "wide": {"gaps": 0.0, "levels": (300, 20)},
    "wide with gaps": {"gaps": 0.1, "levels": (300, 20)},
    "continuous": {"gaps": 0.0, "decimals": 15},
}


@pytest.mark.parametrize("metric", ["ibk", "manhattan"])
@pytest.mark.parametrize("case", CASES)
def test_the_index_finds_what_measuring_all_rows_finds(case, metric, monkeypatch):
    rng = np.random.default_rng(0)
    train, test = (random_rows(rng, n, **CASES[case]) for n in (1500, 300))
    s, q = np.round(rng.random(1500), 2), np.round(rng.random(300), 2)
    w = rng.choice([0.25, 1.0, 3.0], 1500)
    c = SimilarityBinning(gate=False, k=7, metric=metric, neighbour_weights="distance")
    c.fit(s, rng.integers(0, 2, 1500), features=train, sample_weight=w)
    asked = []
    for kind in (nearest_rows.IndexSearch, nearest_rows.AllPairs):
        monkeypatch.setattr(kind, "__call__", _counted(kind.__call__, asked))
    found = c.calibrate(q, features=test)
    by_index = metric == "ibk" or ("wide" not in case and case != "gaps")
    assert bool(asked) == by_index
    monkeypatch.setattr(nearest_rows, "CANDIDATES", 0)
    asked.clear()
    np.testing.assert_allclose(c.calibrate(q, features=test), found, rtol=0, atol=1e-13)
    assert not asked


def _counted(call, log):
    def counted(self, *args):
        log.append(type(self).__name__)
        return call(self, *args)

    return counted


def test_complete_queries_go_by_the_simple_index_though_others_have_gaps():
    rng = np.random.default_rng(1)
    train, test = (random_rows(rng, n, gaps=0.0) for n in (300, 40))
    holes = test.mask(rng.random(test.shape) < 0.1)
    s, q = rng.random(300), rng.random(40)
    c = SimilarityBinning(gate=False, k=5).fit(s, rng.integers(0, 2, 300), features=train)
    complete = holes.notna().all(axis=1).to_numpy()
    assert 0 < complete.sum() < 40
    together = c.calibrate(q, features=holes)
    np.testing.assert_array_equal(
        together[complete], c.calibrate(q[complete], features=holes[complete])
    )
    some = [*np.flatnonzero(complete)[:4], *np.flatnonzero(~complete)[:8]]
    alone = [c.calibrate(q[[i]], features=holes.iloc[[i]])[0] for i in some]
    np.testing.assert_array_equal(together[some], alone)


@pytest.mark.full
def test_blocks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(2)
    train, test = (random_rows(rng, n, gaps=0.05) for n in (120, 50))
    s, q = np.round(rng.random(120), 1), np.round(rng.random(50), 1)
    y = rng.integers(0, 3, 120)
    S, Q = np.column_stack([s, 1 - s, s * 0]), np.column_stack([q, 1 - q, q * 0])
    c = SimilarityBinning(gate=False, k=4).fit(S, y, features=train)
    whole = c.predict_proba(Q, features=test)
    chosen = SimilarityBinning(gate=False, k="auto").fit(S, y, features=train).k_losses_
    monkeypatch.setattr(nearest_rows, "PAIRS", 200)
    monkeypatch.setattr(nearest_rows, "ALL_PAIRS", 500)
    monkeypatch.setattr(choose_k, "PAIRS", 200)
    np.testing.assert_array_equal(c.predict_proba(Q, features=test), whole)
    again = SimilarityBinning(gate=False, k="auto").fit(S, y, features=train).k_losses_
    assert again == pytest.approx(chosen, rel=1e-13)


def test_another_thread_may_drop_an_index_that_was_just_made():
    class Dropping(dict):
        def __setitem__(self, key, value):
            """As if the other thread came at once, with rows of other gaps."""

    rng = np.random.default_rng(19)
    X = rng.random((100, 6))
    c = SimilarityBinning(gate=False, k=5).fit(X[:, 0], rng.integers(0, 2, 100), features=X)
    alone = c.calibrate([0.4], features=X[:1])
    vars(c.rule_.search)["_indexes"] = Dropping()
    assert c.calibrate([0.4], features=X[:1]) == alone


def test_rows_with_ever_other_gaps_leave_no_pile_of_indexes():
    rng = np.random.default_rng(9)
    X = rng.random((200, 6))
    c = SimilarityBinning(gate=False, k=3).fit(X[:, 0], rng.integers(0, 2, 200), features=X)
    queries = rng.random((30, 6))
    queries[rng.random((30, 6)) < 0.3] = np.nan
    alone = [c.calibrate([0.5], features=row[None])[0] for row in queries]
    np.testing.assert_array_equal(alone, c.calibrate([0.5] * 30, features=queries))
    assert len(c.rule_.search._indexes) <= 2


def test_many_ties_are_all_found():
    """Every calibration row is equally far: all of them count, however small k is."""
    n = 3000
    features = np.array([[f"v{i}"] for i in range(n)], dtype=object)
    y = np.arange(n) % 3 == 0
    c = SimilarityBinning(gate=False, k=1, use_scores=False).fit(np.zeros(n), y, features=features)
    assert c.calibrate([0.0], features=[["another"]])[0] == pytest.approx(1 / 3)


def test_is_scikit_learns_nearest_neighbours_where_nothing_ties():
    rng = np.random.default_rng(3)
    X, new = rng.random((500, 6)), rng.random((200, 6))
    X[0], X[1] = 0.0, 1.0  # so that ranges are 1
    y = np.array(["no", "yes"])[rng.integers(0, 2, 500)]
    for weights in ("uniform", "distance"):
        pull = weights if weights == "uniform" else lambda d: 1 / (d / np.sqrt(6) + 0.001)
        theirs = KNeighborsClassifier(10, weights=pull).fit(X, y).predict_proba(new)
        c = SimilarityBinning(gate=False, use_scores=False, neighbour_weights=weights).fit(
            X[:, 0], y, features=X
        )
        np.testing.assert_allclose(c.predict_proba(new[:, 0], features=new), theirs, atol=1e-12)


def test_equal_differences_tie_far_from_zero():
    """1e9 + 1 and 1e9 + 3 are equally far from 1e9 + 2, though their scaled values are rounded."""
    values = 1e9 + np.array([[0.0], [1.0], [3.0], [7.0], [1e5]])
    c = SimilarityBinning(gate=False, k=1, use_scores=False).fit(
        np.zeros(5), [0, 1, 0, 1, 1], features=values
    )
    assert c.calibrate([0.0], features=[[1e9 + 2]]).tolist() == [0.5]


# --- promises -----------------------------------------------------------------------------------


@given(problems(weight=st.integers(0, 3).map(float), most=15), st.booleans())
def test_whole_weights_are_repetition(p, auto):
    times = np.array(p["w"], dtype=int)
    repeated = {
        name: [v for v, t in zip(p[name], times, strict=True) for _ in range(t)]
        for name in ("rows", "scores", "y")
    }
    changes = {"k": "auto"} if auto else {}
    changes["attribute_weights"] = "mutual_info"
    weighted = fitted(p, **changes)
    again = fitted({**p, **repeated, "w": None}, **changes)
    assert weighted.k_ == again.k_
    if auto:
        assert weighted.k_losses_ == pytest.approx(again.k_losses_, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(weighted.attribute_weights_, again.attribute_weights_, atol=1e-9)
    np.testing.assert_allclose(predicted(weighted, p), predicted(again, p), atol=1e-9)
    assert len(weighted.rule_.counts) == len(again.rule_.counts)


@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_of_columns_does_not_matter(p, random):
    names = [f"x{j}" for j in range(len(p["nominal"]))]
    order, columns = list(range(len(p["y"]))), list(names)
    random.shuffle(order)
    random.shuffle(columns)
    frame = pd.DataFrame(table(p["rows"], len(names)), columns=names)
    queries = pd.DataFrame(table(p["queries"], len(names)), columns=names)
    s, y, w = as_scores(p["scores"]), np.array(p["y"]), np.array(p["w"])
    c = SimilarityBinning(
        gate=False,
        k=p["k"],
        weights="counts",
        classes=list(range(p["classes"])),
        **p["options"],
    )
    one = clone(c).fit(s, y, features=frame, sample_weight=w)
    other = clone(c).fit(
        s[order], y[order], features=frame.iloc[order][columns], sample_weight=w[order]
    )
    asked = as_scores(p["query_scores"])
    want = one.predict_proba(asked, features=queries)
    np.testing.assert_allclose(other.predict_proba(asked, features=queries), want, atol=1e-12)
    np.testing.assert_array_equal(one.predict_proba(asked, features=queries[columns]), want)


@given(problems(weight=st.just(1.0), most=14))
def test_auto_is_leave_one_out(p):
    c = fitted(p, k="auto")
    ks = list(c.k_losses_)
    n = len(p["y"])
    assert ks == [k for k in (1, 2, 3, 4, 6, 8, 10, 11) if k <= min(n - 1, max(10, 2 * n**0.5))]
    want = naive.leave_one_out(
        p["rows"],
        p["scores"],
        p["y"],
        nominal=p["nominal"],
        classes=p["classes"],
        ks=ks,
        **p["options"],
    )
    assert c.k_losses_ == pytest.approx(want, rel=1e-9, abs=1e-11)
    least = min(c.k_losses_.values())
    assert c.k_ == max(k for k, v in c.k_losses_.items() if v <= least * (1 + 1e-12))


def _leave_groups_out(p, groups, w, ks):
    """The Brier score of each k, every row predicted without one unit of what its group has."""
    full = naive.attach(p["rows"], p["scores"], True)
    words = [*p["nominal"], *[False] * (len(full[0]) - len(p["nominal"]))]
    spans, ones = naive.ranges(full, words), [1] * len(words)
    w = [Fraction(v) for v in w]
    total = {g: sum(v for v, h in zip(w, groups, strict=True) if h == g) for g in groups}
    losses = dict.fromkeys(ks, 0.0)
    for query, group, label, weight in zip(full, groups, p["y"], w, strict=True):
        kept = [
            v * (1 - 1 / max(total[g], 1)) if g == group else v
            for v, g in zip(w, groups, strict=True)
        ]
        near = [
            (naive.distance(query, row, words, spans, ones, p["options"]["metric"]), c, v)
            for row, c, v in zip(full, p["y"], kept, strict=True)
            if v
        ]
        for k in ks:
            found = naive.vote(
                near,
                k,
                p["classes"],
                float(sum(kept)),
                attributes=float(len(ones)),
                **p["options"],
            )
            loss = sum((v - (c == label)) ** 2 for c, v in enumerate(found))
            losses[k] += float(weight) * loss / float(sum(w))
    return losses


@given(problems(weight=st.just(1.0), most=8), st.sampled_from([1.0, 2.0]), st.data())
def test_auto_leaves_out_a_row_with_all_of_its_scores(p, times, data):
    n, r = len(p["y"]), 3
    quarters = st.lists(st.integers(0, 4).map(lambda v: v / 4), min_size=3, max_size=3)
    more = data.draw(st.lists(quarters, min_size=2 * n, max_size=2 * n))
    width = len(p["scores"][0])
    copies = {
        "rows": p["rows"] * r,
        "scores": p["scores"] + [row[:width] for row in more],
        "y": p["y"] * r,
        "nominal": p["nominal"],
    }
    groups = list(range(10, 10 + n)) * r
    options = {"weights": "counts", **p["options"]}
    c = SimilarityBinning(gate=False, k="auto", classes=list(range(p["classes"])), **options)
    c.fit_rows(
        as_scores(copies["scores"]),
        copies["y"],
        table(copies["rows"], len(p["nominal"])),
        np.full(n * r, times / r),
        groups=groups,
    )
    assert list(c.k_losses_) == choose_k.ks_to_try(n * times)
    w = [Fraction(times) / r] * (n * r)
    want = _leave_groups_out({**p, **copies}, groups, w, list(c.k_losses_))
    assert c.k_losses_ == pytest.approx(want, rel=1e-9, abs=1e-11)


def test_groups_of_one_row_each_change_nothing():
    rng = np.random.default_rng(11)
    X, y, s = rng.integers(0, 3, (60, 2)), rng.integers(0, 2, 60), np.round(rng.random(60), 1)
    w = rng.choice([0.0, 0.5, 1.0, 2.0], 60)
    plain = SimilarityBinning(gate=False, k="auto").fit(s, y, features=X, sample_weight=w)
    same = SimilarityBinning(gate=False, k="auto").fit_rows(s, y, X, w, groups=np.arange(60))
    assert same.k_losses_ == plain.k_losses_
    with pytest.raises(cal.errors.InputError, match="scores has 60 and groups has 59"):
        SimilarityBinning(gate=False, k="auto").fit_rows(s, y, X, w, groups=np.arange(59))


def test_auto_finds_no_structure_in_noise_that_was_scored_again_and_again():
    rng = np.random.default_rng(12)
    X, y = rng.normal(size=(150, 3)), rng.integers(0, 2, 150)
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=4, random_state=0)
    model = cal.CalibratedClassifier(
        GaussianNB(), SimilarityBinning(gate=False, k="auto"), cv=folds
    ).fit(X, y)
    assert model.calibrator_.k_ >= 10
    losses = model.calibrator_.k_losses_
    assert losses[1] > losses[10] > 0.45  # what a fair coin leaves is 0.5


@pytest.mark.parametrize("total", [1.0, 2.0, 2.9])
def test_auto_refuses_counts_that_leave_no_choice(total):
    rng = np.random.default_rng(13)
    X, y = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    w = np.full(50, total / 50)
    few = {"weights": "counts"}
    with pytest.raises(
        cal.errors.InputError, match=f"the 50 rows with their weights count as {total:g}"
    ):
        SimilarityBinning(gate=False, k="auto", **few).fit(X[:, 0], y, features=X, sample_weight=w)
    with pytest.raises(
        cal.errors.InputError, match=rf"k is 5 and the 50 rows .* count as {total:g}"
    ):
        SimilarityBinning(gate=False, k=5, **few).fit(X[:, 0], y, features=X, sample_weight=w)
    with pytest.raises(cal.errors.InputError, match=r"count as 50. Use a smaller k or more rows.$"):
        SimilarityBinning(gate=False, k=51).fit(X[:, 0], y, features=X)
    again = SimilarityBinning(gate=False, k="auto").fit(X[:, 0], y, features=X, sample_weight=w)
    assert again.k_losses_ == pytest.approx(
        SimilarityBinning(gate=False, k="auto").fit(X[:, 0], y, features=X).k_losses_
    )


def test_auto_prefers_many_neighbours_for_noise_and_few_for_sharp_structure():
    rng = np.random.default_rng(4)
    X = rng.random((600, 2))
    noise = SimilarityBinning(gate=False, k="auto").fit(
        X[:, 0] * 0, rng.random(600) < 0.3, features=X
    )
    board = (np.floor(X * 6).sum(axis=1) % 2).astype(int)
    sharp = SimilarityBinning(gate=False, k="auto").fit(X[:, 0] * 0, board, features=X)
    assert noise.k_ >= 32
    assert sharp.k_ <= 6


def test_auto_with_a_single_row():
    c = SimilarityBinning(gate=False, k="auto").fit([0.5], [1], features=[[1.0]])
    assert (c.k_, c.k_losses_) == (1, {})
    assert c.calibrate([0.1], features=[[9.0]]).tolist() == [1.0]


def test_the_score_counts_twice_with_two_classes():
    s, X = [0.0, 1.0, 0.5], [[0.0], [1.0], [1.0]]
    c = SimilarityBinning(gate=False, k=1).fit(s, [0, 1, 0], features=X)
    space = c.rule_.search.space
    queries = distance.search_points(c.rule_.schema, np.array([[0.0]]), np.array([0.5]))
    near = space.all_distances(space.points(queries))[0]
    cells = c.rule_.numeric.tolist()
    assert near[cells.index([0.0, 0.0])] == pytest.approx(2 * 0.25)
    assert near[cells.index([1.0, 0.5])] == pytest.approx(1.0)
    assert SimilarityBinning(gate=False, k=1).fit(
        s, [0, 1, 0], features=X
    ).attribute_weights_.tolist() == [
        1,
        1,
    ]


def test_pos_label_and_labels_of_any_kind():
    X = [[0.0], [0.1], [0.9], [1.0]]
    y = ["spam", "spam", "ham", "ham"]
    c = SimilarityBinning(gate=False, k=2, pos_label="ham").fit([0.1, 0.2, 0.8, 0.9], y, features=X)
    assert c.classes_.tolist() == ["ham", "spam"]
    assert c.predict_proba([0.9], features=[[1.0]]).tolist() == [[1.0, 0.0]]
    assert c.calibrate([0.9], features=[[1.0]]).tolist() == [1.0]
    assert c.predict([0.9, 0.1], features=[[1.0], [0.0]]).tolist() == ["ham", "spam"]


def test_ibk_smoothing_never_says_never():
    c = SimilarityBinning(gate=False, k=2, smoothing="ibk").fit(
        [0, 1, 1], [0, 1, 1], features=[[0], [1], [1]]
    )
    third = 1 / 3
    assert c.calibrate([1], features=[[1]])[0] == pytest.approx((2 + third) / (2 + 2 * third))


def test_degenerate_rows():
    one = SimilarityBinning(gate=False, k=1).fit([0.3], [0], features=[[None]])
    assert one.calibrate([0.9], features=[[3.0]]).tolist() == [0.0]
    flat = SimilarityBinning(gate=False, k=2).fit([0.5] * 3, [0, 1, 1], features=[[7]] * 3)
    assert flat.calibrate([0.1], features=[[1e300]])[0] == pytest.approx(2 / 3)
    none = SimilarityBinning(gate=False, k=1).fit([0.1, 0.9], [0, 1], features=np.empty((2, 0)))
    assert none.calibrate([0.2, 0.8], features=np.empty((2, 0))).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("size", [1.7e308, 5e-324, 1e-310, 1.0])
def test_ranges_of_any_size(size):
    X = np.array([[-size], [0.0], [size], [size]])
    c = SimilarityBinning(gate=False, k=1, use_scores=False).fit(
        np.zeros(4), [0, 1, 1, 0], features=X
    )
    p = c.calibrate(np.zeros(5), features=[[-size], [0.0], [size], [1.79e308], [-1.79e308]])
    assert p.tolist() == [0.0, 1.0, 0.5, p[3], p[4]]
    assert np.isfinite(p).all()


# --- attribute weights --------------------------------------------------------------------------


def test_mutual_information_by_hand():
    x, y = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
    ones = np.ones(4)
    # plug-in ln 2; two values, two classes, two pairs occur: (1 + 1 − 1) / 8
    assert mutual_information(x, y, ones) == pytest.approx(np.log(2) + 1 / 8)
    assert mutual_information(x, np.array([0, 1, 0, 1]), ones) == 0.0
    w = np.array([3.0, 1.0, 2.0, 2.0])
    y = np.array([0, 1, 1, 0])
    twice = np.repeat(np.arange(4), w.astype(int))
    want = mutual_information(x[twice], y[twice], np.ones(8))
    assert mutual_information(x, y, w) == pytest.approx(want)


def test_mutual_info_finds_the_attribute_that_matters():
    rng = np.random.default_rng(5)
    n = 2000
    X = pd.DataFrame(rng.random((n, 4)), columns=[f"noise {j}" for j in range(4)])
    X["word"], X["signal"] = rng.choice(list("abcdefgh"), n), rng.random(n)
    X.loc[rng.random(n) < 0.2, "noise 0"] = np.nan
    y = (rng.random(n) < np.where(X["signal"] > 0.5, 0.9, 0.1)).astype(int)
    plain = SimilarityBinning(gate=False).fit(np.full(n, 0.5), y, features=X)
    weighted = SimilarityBinning(gate=False, attribute_weights="mutual_info").fit(
        np.full(n, 0.5), y, features=X
    )
    *noise, signal, score = weighted.attribute_weights_
    assert signal > 20 * max(noise)
    assert score == 0.0
    assert sum(noise) + signal + 2 * score == pytest.approx(8)
    assert plain.attribute_weights_.tolist() == [1] * 7
    new = X.assign(signal=rng.random(n))
    truth = np.where(new["signal"] > 0.5, 0.9, 0.1)
    errors = [
        np.square(c.calibrate(np.full(n, 0.5), features=new) - truth).mean()
        for c in (weighted, plain)
    ]
    assert errors[0] < 0.8 * errors[1]


def test_nothing_is_known_so_all_weigh_alike():
    c = SimilarityBinning(gate=False, k=1, attribute_weights="mutual_info")
    assert c.fit([1, 1], [0, 1], features=[[1], [1]]).attribute_weights_.tolist() == [1, 1]


def test_given_weights_of_scores():
    s, y, X = [0.0, 0.4, 1.0], [0, 1, 1], [[0.0], [1.0], [0.1]]
    without = SimilarityBinning(gate=False, k=1, attribute_weights=[1, 0]).fit(s, y, features=X)
    plain = SimilarityBinning(gate=False, k=1, use_scores=False).fit(s, y, features=X)
    q = np.linspace(0, 1, 7)
    features = np.linspace(1, 0, 7)[:, None]
    np.testing.assert_array_equal(
        without.calibrate(q, features=features), plain.calibrate(q, features=features)
    )
    for scale in (1e-300, 1.0, 1e300):
        c = SimilarityBinning(gate=False, k=1, attribute_weights=np.array([1.0, 2.0]) * scale)
        np.testing.assert_allclose(c.fit(s, y, features=X).attribute_weights_, [0.6, 1.2])


# --- doors --------------------------------------------------------------------------------------


def frames():
    """The same rows in many clothes: a number, whole numbers with a gap, words, booleans."""
    n = 40
    rng = np.random.default_rng(6)
    whole = [None if i % 7 == 0 else int(v) for i, v in enumerate(rng.integers(0, 5, n))]
    data = {
        "number": [float(v) for v in np.round(rng.random(n), 2)],
        "whole": whole,
        "word": [None if i % 11 == 3 else str(v) for i, v in enumerate(rng.choice(list("xyz"), n))],
        "flag": [bool(v) for v in rng.integers(0, 2, n)],
    }
    boxed = table(list(zip(*data.values(), strict=True)), 4)
    pandas = pd.DataFrame(data)
    yield "lists", boxed.tolist()
    yield "boxed", boxed
    yield "pandas", pandas
    yield "pandas nullable", pandas.astype({"whole": "Int64", "flag": "boolean"})
    yield "pandas categories", pandas.astype({"word": "category"})
    yield "polars", pl.DataFrame(data)
    yield "polars enum", pl.DataFrame(data).with_columns(pl.col("word").cast(pl.Enum(list("xyz"))))
    yield "polars category", pl.DataFrame(data).with_columns(pl.col("word").cast(pl.Categorical))
    yield "arrow", pa.table(data)


def test_every_frame_gives_the_same():
    rng = np.random.default_rng(7)
    s, y = rng.random(40), rng.integers(0, 2, 40)
    everyone = dict(frames())
    results = {}
    for name, features in everyone.items():
        c = SimilarityBinning(gate=False, k=3).fit(s, y, features=features)
        assert c.n_features_in_ == 4
        assert [a.nominal for a in c.rule_.schema.attributes] == [False, False, True, True], name
        named = name not in ("lists", "boxed")
        assert hasattr(c, "feature_names_in_") == named
        others = [everyone[o] for o in {"lists": everyone, "pandas": everyone}.get(name, [name])]
        results[name] = [c.calibrate(s[::-1], features=other) for other in others]
    want = results["pandas"][0]
    for name, found in results.items():
        for p in found:
            np.testing.assert_array_equal(p, want, err_msg=name)


def test_plain_numbers_with_nan_and_masks():
    X = np.array([[1.0, np.nan], [2.0, 3.0], [4.0, 5.0]])
    s, y = [0.1, 0.5, 0.9], [0, 1, 1]
    masked = np.ma.array(np.nan_to_num(X), mask=np.isnan(X))
    frame = pl.DataFrame({"a": [1.0, 2.0, 4.0], "b": [float("nan"), 3.0, 5.0]})
    want = SimilarityBinning(gate=False, k=1).fit(s, y, features=X).calibrate(s, features=X)
    for features in (X, masked, frame, X.astype(np.float32), X.tolist()):
        c = SimilarityBinning(gate=False, k=1).fit(s, y, features=features)
        np.testing.assert_array_equal(c.calibrate(s, features=features), want)


def test_numbers_that_are_categories():
    X = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "zip": [10, 20, 30, 20]})
    s, y = [0.5] * 4, [0, 1, 0, 1]
    by_name = SimilarityBinning(gate=False, k=1, nominal=["zip"]).fit(s, y, features=X)
    by_place = SimilarityBinning(gate=False, k=1, nominal=[1]).fit(s, y, features=X.to_numpy())
    assert by_name.rule_.schema.attributes[1].categories == (10, 20, 30)
    assert by_place.rule_.schema.attributes[1].categories == (10.0, 20.0, 30.0)
    q = pd.DataFrame({"size": [1.0, 1.0], "zip": [20.0, 11.0]})
    for c in (by_name, by_place):
        assert c.calibrate([0.5, 0.5], features=q).tolist() == [1.0, 0.0]
    numbers = SimilarityBinning(gate=False, k=1).fit(s, y, features=X)
    assert numbers.calibrate([0.5], features=X[1:2].assign(zip=29)).tolist() == [0.0]
    assert by_name.calibrate([0.5], features=X[1:2].assign(zip=29)).tolist() == [1.0]


def test_columns_named_by_numbers_are_matched_by_these(tmp_path):
    rng = np.random.default_rng(14)
    X = pd.DataFrame(rng.integers(0, 4, (30, 3)), columns=[5, 0, 7])
    s, y = rng.random(30), rng.integers(0, 2, 30)
    words = X.rename(columns={5: "a", 0: "b", 7: "c"})
    want = (
        SimilarityBinning(gate=False, k=3, nominal=["b"])
        .fit(s, y, features=words)
        .calibrate(s, features=words)
    )
    c = SimilarityBinning(gate=False, k=3, nominal=[0]).fit(s, y, features=X)
    assert [a.nominal for a in c.rule_.schema.attributes] == [False, True, False]
    assert not hasattr(c, "feature_names_in_")  # which are words, by scikit-learn's custom
    cal.save(c, tmp_path / "c.json")
    for part in (c, cal.load(tmp_path / "c.json")):
        for same in (X, X[[7, 5, 0]], X.to_numpy(), words):  # names of another kind: by position
            np.testing.assert_array_equal(part.calibrate(s, features=same), want)
        with pytest.raises(cal.errors.InputError, match=r"columns of .*: 7 missing, 9 unexpected"):
            part.calibrate(s, features=X.rename(columns={7: 9}))
        with pytest.raises(cal.errors.InputError, match="column 7 must hold numbers"):
            part.calibrate(s, features=X.astype({7: str}))
    with pytest.raises(cal.errors.ParameterError, match="names 2, but of the columns 5, 0, 7"):
        SimilarityBinning(gate=False, k=3, nominal=[2]).fit(s, y, features=X)
    mixed = X.rename(columns={5: "a"})  # neither words nor numbers: by position
    c = SimilarityBinning(gate=False, k=3, nominal=[1]).fit(s, y, features=mixed)
    np.testing.assert_array_equal(c.calibrate(s, features=mixed), want)


def test_large_whole_numbers_are_categories_of_their_own():
    a, b = 2**60, 2**60 + 1  # the same as floats
    X = np.array([[a], [b], [None], [a], [3], [10**400]], dtype=object)
    y = [0, 1, 0, 0, 1, 1]
    c = SimilarityBinning(gate=False, k=1, nominal=[0], use_scores=False)
    c.fit(np.zeros(5), y[:5], features=X[:5])
    assert c.rule_.schema.attributes[0].categories == (3, a, b)
    assert c.calibrate(np.zeros(3), features=X[[0, 1, 4]]).tolist() == [0.0, 1.0, 1.0]
    assert c.calibrate([0.0], features=np.array([[b]])).tolist() == [1.0]
    assert rule_from_dict(c.rule_.to_dict(), c.rule_.arrays) == c.rule_
    numbers = SimilarityBinning(gate=False, k=1, use_scores=False).fit(
        np.zeros(5), y[:5], features=X[:5]
    )
    assert numbers.calibrate([0.0], features=[[b]])[0] == pytest.approx(1 / 3)
    with pytest.raises(cal.errors.InputError, match="column 0 must be finite or missing: 1 of 6"):
        SimilarityBinning(gate=False, k=1).fit(np.zeros(6), y, features=X)


def test_words_and_numbers_are_different_categories():
    X = np.array([["1"], [1], ["1"], [1]], dtype=object)
    c = SimilarityBinning(gate=False, k=1).fit([0.5] * 4, [0, 1, 0, 1], features=X)
    assert c.rule_.schema.attributes[0].categories == (1, "1")
    again = rule_from_dict(c.rule_.to_dict(), c.rule_.arrays)
    assert again == c.rule_
    p = again(np.array([0.5, 0.5]), RowInputs(features=np.array([["1"], [1]], dtype=object)))
    assert p[:, 1].tolist() == [0.0, 1.0]


def test_unseen_and_missing_words_differ_from_everything():
    X = [["a"], ["b"], [None]]
    c = SimilarityBinning(gate=False, k=1, use_scores=False).fit([0] * 3, [1, 0, 1], features=X)
    for word in ("z", None):
        assert c.calibrate([0], features=[[word]])[0] == pytest.approx(2 / 3)
    assert c.calibrate([0], features=[["a"]]).tolist() == [1.0]


S3, Y3 = [0.1, 0.5, 0.9], [0, 1, 1]
GOOD = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "y"]})


@pytest.mark.parametrize(
    ("features", "text"),
    [
        (None, "features must be passed"),
        ([1.0, 2.0, 3.0], r"table with rows and columns, but their shape is \(3,\)"),
        (GOOD["a"], "one column came"),
        (GOOD[:2], "scores has 3 and features has 2"),
        (csr_matrix(np.eye(3)), "sparse matrix came"),
        (pl.LazyFrame({"a": [1]}), "lazy frame came. Collect"),
        ([[1.0], [2.0, 3.0], [4.0]], "rows of one length|table with rows and columns"),
        ([[1.0], [np.inf], [np.inf]], r"column 0 must be finite or missing: 2 of 3 .* row 1"),
        (GOOD.assign(a=[1.0, -np.inf, 2.0]), "a must be finite or missing"),
        (GOOD.assign(a=pd.to_datetime(["2020", "2021", "2022"])), "a of the features .* Datetime"),
        (np.array([["2020-01-01"]] * 3, dtype="datetime64[D]"), "column 0 .* datetime64"),
        ([[{"k": 1}], [2], [3]], "values of type dict came"),
        ([[1 + 2j], [1], [2]], "complex"),
        ("abc", "features must be a table"),
        (pd.DataFrame(np.eye(3), columns=["a", "a", "b"]), "must have different names"),
    ],
)
def test_features_that_cannot_be_used(features, text):
    with pytest.raises(cal.errors.InputError, match=text):
        SimilarityBinning(gate=False, k=1).fit(S3, Y3, features=features)


@pytest.mark.parametrize(
    ("features", "text"),
    [
        (None, "features must be passed"),
        (GOOD.drop(columns="b"), "'b' missing"),
        (GOOD.rename(columns={"b": "c"}), "'b' missing, 'c' unexpected"),
        (GOOD.assign(d=1), "'d' unexpected"),
        (np.zeros((3, 3)), "must have 2 columns, as at fit, but 3 came"),
        (GOOD.assign(a=["u", "v", "w"]), "a must hold numbers, .* but categories came .*'u'"),
        (GOOD.assign(b=[1, 2, 3]), "b must hold words, .* but numbers or truth values came .*1"),
        (GOOD[:2], "scores has 3 and features has 2"),
        (GOOD.assign(a=np.inf), "a must be finite or missing: 3 of 3"),
    ],
)
def test_features_that_do_not_fit_the_calibration_rows(features, text):
    c = SimilarityBinning(gate=False, k=1).fit(S3, Y3, features=GOOD)
    for part in (c, c.to_fitted()):
        with pytest.raises(cal.errors.InputError, match=text):
            part.predict_proba(S3, features=features)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"k": 0}, cal.errors.ParameterError, "k of SimilarityBinning must be a whole number"),
        ({"k": "best"}, cal.errors.ParameterError, "'auto'"),
        ({"k": 4}, cal.errors.InputError, r"k is 4 and the 3 rows with their weights count as 3"),
        ({"metric": "cosine"}, cal.errors.ParameterError, "'ibk' or 'manhattan'"),
        ({"neighbour_weights": "no"}, cal.errors.ParameterError, "'uniform' or 'distance'"),
        ({"smoothing": "no"}, cal.errors.ParameterError, "'none' or 'ibk'"),
        ({"use_scores": 1}, cal.errors.ParameterError, "True or False"),
        ({"attribute_weights": "no"}, cal.errors.ParameterError, "None, 'mutual_info' or an array"),
        ({"attribute_weights": [1]}, cal.errors.InputError, "hold 2 weights.* or 3 .* but 1 came"),
        ({"attribute_weights": [1, -1]}, cal.errors.InputError, "at least 0"),
        (
            {"attribute_weights": [1, np.nan]},
            cal.errors.InputError,
            "attribute_weights must be finite",
        ),
        ({"attribute_weights": [0, 0, 0]}, cal.errors.InputError, "must not all be 0"),
        ({"attribute_weights": ["x", "y"]}, cal.errors.InputError, "list of numbers"),
        ({"nominal": ["c"]}, cal.errors.ParameterError, "names 'c', but .* 'a', 'b'"),
        ({"nominal": [2]}, cal.errors.ParameterError, "positions from 0 to 1, but 2 came"),
        ({"nominal": "a"}, cal.errors.ParameterError, "list of names or positions"),
        ({"nominal": [1.5]}, cal.errors.ParameterError, "names or positions, but 1.5"),
        ({"pos_label": 7}, cal.errors.InputError, "pos_label must be one of"),
    ],
)
def test_options_out_of_range(options, error, text):
    with pytest.raises(error, match=text):
        SimilarityBinning(**{"k": 1, **options}).fit(S3, Y3, features=GOOD)


def test_scores_of_a_class_that_y_lacks():
    P, X = np.full((3, 3), 1 / 3), [[1], [2], [3]]
    with pytest.raises(cal.errors.InputError, match=r"3 columns.* only \[0, 1\] .*all: classes="):
        SimilarityBinning(gate=False, k=1).fit(P, [0, 1, 1], features=X)
    c = SimilarityBinning(gate=False, k=1, classes=[0, 1, 2]).fit(P, [0, 1, 1], features=X)
    assert c.predict_proba(P, features=X).shape == (3, 3)


def test_only_ratios_of_given_weights_matter_where_scores_have_one_too():
    s, y, X = [0.0, 0.4, 1.0], [0, 1, 1], [[0.0], [1.0], [0.1]]
    found = {
        weights: SimilarityBinning(gate=False, k=1, attribute_weights=weights).fit(s, y, features=X)
        for weights in ((1.0,), (3.0,), (1.0, 2.0), (3.0, 6.0))
    }
    assert found[1.0,].rule_ != found[3.0,].rule_
    np.testing.assert_allclose(found[1.0, 2.0].attribute_weights_, [0.6, 1.2])
    np.testing.assert_allclose(found[3.0, 6.0].attribute_weights_, [0.6, 1.2])


def test_scores_must_be_an_attribute_where_there_is_no_other():
    with pytest.raises(cal.errors.InputError, match="must have columns where scores are not used"):
        SimilarityBinning(gate=False, k=1, use_scores=False).fit(S3, Y3, features=np.empty((3, 0)))


def test_rows_of_weight_zero_are_absent():
    X = [[1.0], [2.0], [np.inf]]
    c = SimilarityBinning(gate=False, k=2).fit(S3, Y3, features=X, sample_weight=[1, 1, 0])
    assert c.rule_ == SimilarityBinning(gate=False, k=2).fit(S3[:2], Y3[:2], features=X[:2]).rule_
    with pytest.raises(
        cal.errors.InputError, match="k is 3 and the 2 rows with their weights count as 2"
    ):
        SimilarityBinning(gate=False, k=3).fit(S3, Y3, features=X, sample_weight=[1, 1, 0])


# --- values and files ---------------------------------------------------------------------------


def test_clone_pickle_refit():
    c = SimilarityBinning(gate=False, k=1, nominal=["a"], attribute_weights=[1.0, 2.0])
    c.fit(S3, Y3, features=GOOD)
    assert clone(c).get_params() == c.get_params()
    for twin in (pickle.loads(pickle.dumps(c)), copy.deepcopy(c)):
        assert twin.rule_ == c.rule_
        assert hash(twin.rule_) == hash(c.rule_)
        np.testing.assert_array_equal(
            twin.calibrate(S3, features=GOOD), c.calibrate(S3, features=GOOD)
        )
    with pytest.raises(ValueError, match="WRITEABLE"):
        c.rule_.numeric.setflags(write=True)
    c.set_params(nominal=None).fit(S3, Y3, features=GOOD.assign(b=1.0).to_numpy())
    assert not hasattr(c, "feature_names_in_")


@given(problems(most=12))
def test_save_and_load(p):
    c = fitted(p)
    again = Fitted.from_dict(c.to_fitted().to_dict(), c.rule_.arrays)
    assert again == c.to_fitted()
    features = table(p["queries"], len(p["nominal"]))
    np.testing.assert_array_equal(
        again.predict_proba(as_scores(p["query_scores"]), features=features), predicted(c, p)
    )


def test_files(tmp_path):
    X = GOOD.assign(flag=[True, False, True])
    c = SimilarityBinning(gate=False, k=2, nominal=["a"]).fit(S3, ["no", "yes", "yes"], features=X)
    cal.save(c, tmp_path / "c.json")
    again = cal.load(tmp_path / "c.json")
    assert again == c.to_fitted()
    np.testing.assert_array_equal(
        again.predict_proba(S3, features=X), c.predict_proba(S3, features=X)
    )
    assert again.predict(S3, features=X).tolist() == c.predict(S3, features=X).tolist()
    assert again.params["nominal"] == ("a",)


def _damages():
    """Changes to the parts of a rule, none of which may pass."""
    state = [
        ("k", 0),
        ("k", 99),
        ("k", True),
        ("k", None),
        ("metric", "x"),
        ("metric", []),
        ("weights", None),
        ("smoothing", 3),
        ("attributes", None),
        ("attributes", [["a", None]]),
        ("attributes", [["a", None], ["b", ["x", "x"]]]),
        ("attributes", [["a", None], ["b", [[]]]]),
        ("attributes", [["a", None], ["b", [float("nan")]]]),
        ("attributes", [["a"], ["b", None]]),
        ("attributes", [["b", None], ["b", ["x", "y"]]]),
        ("attributes", [["a", ["x"]], ["b", None]]),
        ("attributes", [["a", None], ["b", ["x"]]]),
        ("attributes", [["a", None], [1, ["x", "y"]]]),
        ("attributes", [["a", None], [True, ["x", "y"]]]),
        ("attributes", [["a", None], [1.0, ["x", "y"]]]),
        ("named", 1),
    ]
    yield from (("state", key, value) for key, value in state)
    yield from (
        ("array", key, change)
        for key, change in [
            ("numeric", lambda a: a[:-1]),
            ("numeric", lambda a: a[:, :1]),
            ("numeric", lambda a: a * np.nan),
            ("numeric", lambda a: a.astype(np.float32)),
            ("numeric", lambda a: a.ravel()),
            ("numeric", lambda a: a.astype(object)),
            ("absent", lambda a: ~a),
            ("absent", lambda a: a.astype(float)),
            ("codes", lambda a: a + 2),
            ("codes", lambda a: a - 2),
            ("codes", lambda a: a[:, :0]),
            ("counts", lambda a: a * 0),
            ("counts", lambda a: -a),
            ("counts", lambda a: a[:, :1]),
            ("counts", lambda a: a[:0]),
            ("counts", lambda a: a * np.inf),
            ("numeric_weight", lambda a: a[:1]),
            ("numeric_weight", lambda a: a - 9),
            ("numeric_weight", lambda a: a * 1e300),
            ("nominal_weight", lambda a: np.append(a, 1)),
            ("nominal_weight", lambda a: a * np.nan),
            ("codes", None),
        ]
    )


@pytest.mark.parametrize("damage", list(_damages()), ids=lambda d: "-".join(map(str, d[:2])))
def test_damaged_files_are_refused(damage):
    where, key, change = damage
    c = SimilarityBinning(gate=False, k=2).fit(S3, Y3, features=GOOD)
    document, arrays = c.to_fitted().to_dict(), c.rule_.arrays
    state = document["map"]
    if where == "state":
        state[key] = change
    elif change is None:
        del arrays[key]
    else:
        with np.errstate(invalid="ignore"):
            arrays[key] = change(arrays[key])
    with pytest.raises(cal.errors.InputError):
        Fitted.from_dict(document, arrays)


def test_reading_needs_no_scikit_learn():
    code = (
        "import sys, calibrant.methods.similarity.neighbours; "
        "print([m for m in ('sklearn', 'numba', 'pandas', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_progress_is_shown_only_when_asked(capsys):
    c = SimilarityBinning(gate=False, k=1).fit(S3, Y3, features=GOOD)
    c.calibrate(S3, features=GOOD)
    assert capsys.readouterr() == ("", "")
    shown = SimilarityBinning(gate=False, k=1, progress=True).fit(S3, Y3, features=GOOD)
    shown.calibrate(S3, features=GOOD)
    out, err = capsys.readouterr()
    assert out == ""
    assert "searching neighbours" in err


def test_a_models_rows_are_the_features():
    c = SimilarityBinning(gate=False, k=1).fit_rows(S3, Y3, GOOD)
    companion = pickle.loads(pickle.dumps(c.companion(None, None, None)))
    np.testing.assert_array_equal(
        c.predict_rows(S3, companion(GOOD)), c.predict_proba(S3, features=GOOD)
    )
    assert c.multiclass


def test_wide_columns_are_known_as_such():
    rng = np.random.default_rng(8)
    frame = random_rows(rng, 1500, gaps=0.0, levels=(300, 20, 3))
    c = SimilarityBinning(gate=False).fit(
        rng.random(1500), rng.integers(0, 2, 1500), features=frame
    )
    assert c.rule_.search.space.wide.tolist() == [True, True, False]
    assert distance.WIDTH < 300


def test_the_gate_keeps_scores_that_neighbours_do_not_better():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 6))
    p = 1.0 / (1.0 + np.exp(-X[:, 0] - X[:, 1]))
    right = cal.SimilarityBinning(gate=True).fit(p, rng.random(800) < p, features=X)
    assert right.kept_ == "uncalibrated"
    assert np.array_equal(right.calibrate(p, features=X), p)
    bent = cal.SimilarityBinning(gate=True).fit(p, rng.random(800) < p**3, features=X)
    assert bent.kept_ == "BLS"
    y = rng.random(800) < np.where(X[:, 2] > 0, 0.9, 0.1)
    blind = np.full(800, 0.5)
    helped = cal.SimilarityBinning(gate=True).fit(blind, y, features=X[:, 2:3])
    plain = cal.SimilarityBinning(gate=False).fit(blind, y, features=X[:, 2:3])
    assert helped.kept_ == plain.kept_ == "neighbours"
    assert helped.rule_ == plain.rule_


def test_the_gate_of_several_classes(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    P = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    drawn = (P.cumsum(axis=1) < rng.random((1500, 1))).sum(axis=1)
    labels = np.array(["a", "b", "c"])
    right = cal.SimilarityBinning().fit(P, labels[drawn], features=X)
    assert right.kept_ == "uncalibrated"
    assert np.allclose(right.predict_proba(P, features=X), P, atol=1e-15)
    cal.save(right, tmp_path / "c.json")
    loaded = cal.load(tmp_path / "c.json")
    assert np.array_equal(loaded.predict_proba(P), right.predict_proba(P, features=X))
    assert np.array_equal(loaded.predict_proba(P, features=X), loaded.predict_proba(P))
    with pytest.raises(cal.errors.InputError, match="lower must not be given: this calib"):
        loaded.predict_proba(P, lower=P[:, 0])
    assert "map: Softmax" in repr(loaded)

    sharp = P**3 / (P**3).sum(axis=1, keepdims=True)
    softened = cal.SimilarityBinning().fit(sharp, labels[drawn], features=X)
    assert softened.kept_ == "temperature"
    expected = cal.Temperature().fit(sharp, labels[drawn]).predict_proba(sharp)
    assert np.allclose(softened.predict_proba(sharp, features=X), expected, atol=1e-12)

    blind, seen = np.full((1500, 3), 1 / 3), X.argmax(axis=1)
    helped = cal.SimilarityBinning().fit(blind, labels[seen], features=X)
    plain = cal.SimilarityBinning(gate=False).fit(blind, labels[seen], features=X)
    assert helped.kept_ == plain.kept_ == "neighbours"
    assert helped.rule_ == plain.rule_


def test_the_gate_of_several_classes_with_hardly_any_rows():
    scores = np.full((4, 3), 1 / 3)
    few = cal.SimilarityBinning(k=2).fit(scores, [0, 1, 2, 0], features=scores)
    assert few.kept_ == "uncalibrated"


@pytest.mark.parametrize("n", [10, 11, 12])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_gate_of_a_few_more_rows_than_k(n, classes):
    # the rest of a fold has fewer rows than k
    scores = np.random.default_rng(n).dirichlet(np.ones(classes), n)
    c = cal.SimilarityBinning().fit(scores, np.arange(n) % classes, features=scores)
    assert c.kept_ in {"neighbours", "BLS", "temperature", "uncalibrated"}


def test_a_gated_calibrator_is_saved_as_the_map_it_kept(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(400)
    c = cal.SimilarityBinning(gate=True).fit(p, rng.random(400) < p, features=p[:, None])
    cal.save(c, tmp_path / "c.json")
    assert np.array_equal(cal.load(tmp_path / "c.json").calibrate(p), p)
