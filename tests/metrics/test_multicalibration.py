"""Calibration over many groups of rows: against a slow twin, its level, what it finds and says."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from calibrant import ScoreTable
from calibrant.errors import InputError, ParameterError
from calibrant.metrics import evaluate, multicalibration
from calibrant.metrics import groups as redrawn_groups
from calibrant.metrics._kernel import add_to_groups
from calibrant.metrics.groups import GroupSums, _difference_interval
from twins import groups as naive


def rows(n=3000, seed=0, wrong=None):
    """A frame, predictions, and labels that are right but where ``wrong`` says so."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "country": rng.choice(["de", "fr", "it"], n),
            "age": rng.integers(18, 90, n),
            "income": np.where(rng.random(n) < 0.2, np.nan, rng.lognormal(size=n)),
        }
    )
    p = rng.random(n)
    truth = p if wrong is None else np.where(wrong(frame), p**2, p)
    return frame, p, rng.random(n) < truth


def named(found):
    return {one.name: one for one in found.groups}


def italy(frame):
    return frame["country"] == "it"


# --- against the twin -------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_p_values_are_those_of_all_possible_labels(weighted):
    """Few rows: every set of labels is looked at."""
    rng = np.random.default_rng(3)
    n = 9
    p = np.array([0.2, 0.3, 0.3, 0.6, 0.6, 0.7, 0.1, 0.8, 0.5])
    y = np.array([1, 1, 1, 0, 1, 1, 1, 1, 0])
    w = rng.integers(1, 4, n) / 2 if weighted else np.ones(n)
    columns = {"a": list("xxxyyyxxy"), "b": list("uvuvuvuuv")}
    found = multicalibration(
        y,
        p,
        features=pd.DataFrame(columns),
        min_rows=1,
        quantiles=2,
        replicates=20_000,
        sample_weight=w,
    )
    cut = np.sort(p)[-(-n // 2) - 1]
    low, high = f"{p.min():g} to {cut:g}", f"{p[p > cut].min():g} to {p.max():g}"
    columns["prediction"] = np.where(p <= cut, low, high).tolist()
    groups = naive.masks(columns)
    exact = naive.p_values(groups, y, p, w / ((w @ w) / w.sum()))
    mine = named(found)
    assert len(mine) == len(groups)
    for key, chance in exact.items():
        parts = [f"{c} {v}" if c == "prediction" else f"{c} = {v}" for c, v in sorted(key)]
        one = mine[" & ".join(parts) or "all rows"]
        weight, predicted, observed, _ = naive.sums(groups[key], y, p, w)
        assert one.rows == len(groups[key])
        assert one.weight == pytest.approx(weight)
        assert (one.predicted, one.observed) == pytest.approx((predicted, observed))
        assert one.difference == pytest.approx(observed - predicted)
        assert one.p_value == pytest.approx(chance, abs=0.02)


def test_intervals_are_the_twins():
    rng = np.random.default_rng(0)
    cases = [(rng.random(40), rng.random(40) < 0.4, rng.exponential(size=40)) for _ in range(5)]
    cases.append((np.full(40, 0.1), np.zeros(40, dtype=bool), np.ones(40)))
    for p, y, w in cases:
        weight, predicted, observed, chance = naive.sums(range(40), y, p, w)
        gap = y - p - (observed - predicted)
        sums = GroupSums(
            *(
                np.array([value])
                for value in (
                    40.0,
                    weight,
                    40.0,
                    predicted * weight,
                    observed * weight,
                    chance,
                    float(w**2 @ gap**2),
                )
            )
        )
        low, high = _difference_interval(sums, 2.7)
        expected = naive.interval(range(40), y, p, w, 2.7)
        assert (low[0], high[0]) == pytest.approx(expected, abs=1e-9)


def test_the_kernel_adds_to_all_groups():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, (3, 50)).astype(np.uint8)
    first, second = np.array([0, 1]), np.array([2, 2])
    place = np.arange(18)
    place[4] = -1
    values = rng.random((50, 5))
    sums = np.zeros((18, 5))
    add_to_groups(codes, first, second, np.array([3, 3]), np.array([0, 9]), place, values, sums)
    for j in range(2):
        for a in range(3):
            for b in range(3):
                own = values[(codes[first[j]] == a) & (codes[second[j]] == b)].sum(axis=0)
                cell = 9 * j + 3 * a + b
                np.testing.assert_allclose(sums[cell], 0.0 * own if cell == 4 else own)


# --- level and power --------------------------------------------------------------------------


@pytest.mark.full
def test_right_predictions_are_refused_as_often_as_said():
    """Monte Carlo p-values are uniform; ties make them larger."""
    found = []
    for seed in range(200):
        frame, p, y = rows(300, seed)
        test = multicalibration(
            y, p, features=frame, replicates=100, min_rows=20, random_state=1000 + seed
        )
        found.append(test.p_value)
    rejected = np.mean(np.array(found) <= 0.1)
    assert 0.04 < rejected < 0.17  # ± 3 standard errors of 200 trials


@pytest.mark.slow
@pytest.mark.parametrize(("n", "trials"), [(300, 2000), (2000, 500), (20_000, 200)])
@pytest.mark.parametrize("crossings", [False, True])
def test_the_level_holds_whatever_the_number_of_groups(n, trials, crossings):
    rejected = 0
    for seed in range(trials):
        frame, p, y = rows(n, seed)
        w = np.random.default_rng(seed).exponential(size=n) if seed % 2 else None
        options = {"replicates": 199, "random_state": 10**6 + seed, "min_rows": 20}
        found = multicalibration(
            y, p, features=frame, crossings=crossings, sample_weight=w, **options
        )
        rejected += found.p_value <= 0.05
    assert rejected / trials == pytest.approx(0.05, abs=3.0 * np.sqrt(0.05 * 0.95 / trials))


def test_the_wrong_group_is_found():
    frame, p, y = rows(wrong=italy)
    found = multicalibration(y, p, features=frame)
    worst = found.worst[0]
    assert worst.name == "country = it"
    assert worst.verdict == "too high"
    assert worst.p_value == pytest.approx(1 / 1001)
    assert worst.high < 0.0
    assert found.p_value == worst.p_value
    assert 0.0 < found.sure <= found.largest
    assert found.mean_expected < found.mean
    assert 0.0 < found.mean_debiased < found.mean
    # crossings of it say nothing of their own
    repeats = [one for one in found.groups if one.wrong and "country = it &" in one.name]
    assert repeats
    assert {one.same_as for one in repeats} == {"country = it"}
    assert found.repeats == sum(one.same_as is not None for one in found.groups)
    assert found.wrong == sum(one.wrong for one in found.groups)


@pytest.mark.full
def test_a_wrong_crossing_is_told_from_its_columns():
    frame, p, y = rows(20_000, wrong=lambda f: italy(f) & (f["age"] > 75))
    found = multicalibration(y, p, features=frame)
    assert found.worst[0].name.startswith("country = it & age 7")
    whole = named(found)["country = it"]
    assert whole.wrong
    assert whole.same_as == found.worst[0].name


def test_without_crossings_columns_alone_are_looked_at():
    frame, p, y = rows()
    found = multicalibration(y, p, features=frame, crossings=False)
    assert not any("&" in one.name for one in found.groups)
    assert found.looked_at == len(found.groups) == 1 + 5 + 3 + 5 + 5 + 1


def test_overconfident_predictions_do_not_make_intervals_narrow():
    """p of 0.001 and 0.999 where the truth is a half: what the rows show decides the width."""
    held = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = rng.choice([0.001, 0.999], 400)
        y = rng.random(400) < 0.6
        found = multicalibration(
            y, p, features=rng.choice(list("ab"), (400, 1)), replicates=100, random_state=seed
        )
        truth = 0.6 - np.mean(p)
        one = named(found)["all rows"]
        held += one.low <= truth <= one.high
    assert held >= 38


# --- weights ----------------------------------------------------------------------------------


def test_a_common_factor_of_weights_changes_nothing():
    frame, p, y = rows(600, wrong=italy)
    plain = multicalibration(y, p, features=frame, replicates=100)
    sevens = multicalibration(y, p, features=frame, replicates=100, sample_weight=np.full(600, 7.0))
    for a, b in zip(plain.groups, sevens.groups, strict=True):
        assert (a.name, a.p_value, a.low) == (b.name, b.p_value, b.low)
        assert b.weight == pytest.approx(7.0 * a.weight)


def test_rows_of_weight_zero_are_absent():
    frame, p, y = rows(900)
    w = np.where(np.arange(900) % 3 == 0, 0.0, 1.0)
    there = w > 0
    found = multicalibration(y, p, features=frame, replicates=100, sample_weight=w)
    assert found == multicalibration(y[there], p[there], features=frame[there], replicates=100)


def test_counts_are_repeated_rows():
    frame, p, y = rows(500, wrong=italy)
    w = np.random.default_rng(0).integers(1, 4, 500)
    again = np.repeat(np.arange(500), w)
    options = {"crossings": False, "quantiles": 2, "min_rows": 60, "replicates": 2000}
    columns = frame[["country"]]
    counts = multicalibration(y, p, features=columns, sample_weight=w, weights="counts", **options)
    repeated = multicalibration(y[again], p[again], features=columns.iloc[again], **options)
    one, other = named(counts), named(repeated)
    for country in ("de", "fr", "it"):
        a, b = one[f"country = {country}"], other[f"country = {country}"]
        assert (a.weight, a.predicted, a.observed) == pytest.approx(
            (b.weight, b.predicted, b.observed)
        )
        assert a.p_value == pytest.approx(b.p_value, abs=0.05)
        assert (a.low, a.high) == pytest.approx((b.low, b.high), abs=0.01)


def test_counts_must_be_whole():
    frame, p, y = rows(100)
    with pytest.raises(InputError, match="not whole"):
        multicalibration(y, p, features=frame, sample_weight=np.full(100, 0.5), weights="counts")


# --- columns ----------------------------------------------------------------------------------


def test_frames_of_all_kinds_agree():
    frame, p, y = rows(800, wrong=italy)
    found = multicalibration(y, p, features=frame, replicates=100)
    assert found == multicalibration(y, p, features=pl.from_pandas(frame), replicates=100)
    categories = frame.astype({"country": "category"})
    assert found == multicalibration(y, p, features=categories, replicates=100)
    assert "income missing" in named(found)
    assert any(name.startswith("age 18 to ") for name in named(found))


def test_columns_that_say_nothing_are_left_out_and_named():
    frame, p, y = rows(600)
    odd = frame.assign(one=1, gone=None, code=[f"id{i}" for i in range(600)], label=y)
    found = multicalibration(y, p, features=odd, replicates=100)
    assert found.notes[0] == "left out, for their rows are all in one group: one, gone, code"
    assert found.notes[1].startswith("left out, for they tell the label exactly: label.")
    plain = multicalibration(y, p, features=frame, replicates=100)
    assert [one.name for one in found.groups] == [one.name for one in plain.groups]


def test_columns_of_the_same_groups_are_looked_at_once():
    frame, p, y = rows(600)
    found = multicalibration(y, p, features=frame.assign(p=p, again=frame["age"]), replicates=100)
    assert found.notes == ("left out, for they have the groups of another column: p, again",)


def test_ranges_have_names_that_people_read_and_that_differ():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    features = pd.DataFrame(
        {
            "year": rng.integers(1950, 2020, 500),
            "income": rng.normal(-20_000, 5_000, 500),
            "near": 1.0 + rng.random(500) * 1e-6,
            "rooms": rng.choice([1.0, 2.0, np.nan], 500),
            "mixed": pd.Series(rng.choice(["1", "2"], 500)).map({"1": 1, "2": "1"}),
        }
    )
    found = multicalibration(rng.random(500) < p, p, features=features, replicates=100)
    names = list(named(found))
    assert len(set(names)) == len(names) == found.looked_at
    assert any(name.startswith("year 1950 to 19") for name in names)
    assert any(name.startswith("income −2") and "e+" not in name for name in names)
    assert sum(name.startswith("near 1") for name in names if "&" not in name) == 5
    assert {"rooms = 1", "rooms = 2", "rooms missing", "mixed = 1", "mixed = '1'"} <= set(names)


def test_rare_categories_are_put_together():
    rng = np.random.default_rng(0)
    city = np.where(rng.random(2000) < 0.3, "small", "big").astype(object)
    few = rng.choice(2000, 100, replace=False)
    city[few] = [f"c{i % 25}" for i in range(100)]
    p = rng.random(2000)
    y = rng.random(2000) < p
    found = multicalibration(y, p, features=pd.DataFrame({"city": city}), replicates=100)
    assert named(found)["city: 25 rare values"].rows == 100
    assert found.notes == ("rare values were put together as one group: 25 of city",)


def test_many_columns_are_crossed_with_the_prediction_only():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    found = multicalibration(
        y, p, features=rng.random((200, 45)) < 0.5, replicates=100, min_rows=20
    )
    crossed = [one.name for one in found.groups if "&" in one.name]
    assert crossed
    assert all("& prediction" in name for name in crossed)
    assert "more than 40 columns" in found.notes[-1]


def test_what_could_not_happen_is_surely_wrong():
    frame, p, y = rows(400)
    p, y = p.copy(), y.copy()
    p[0], y[0] = 0.0, True
    found = multicalibration(y, p, features=frame, replicates=100)
    assert found.p_value == 0.0
    assert "1 rows happened that had the probability 0" in found.notes
    certain = multicalibration(y, y.astype(float), features=frame, replicates=100)
    assert certain.p_value == 1.0
    assert certain.wrong == 0
    opposite = multicalibration(y, 1.0 - y, features=frame, replicates=100)
    assert opposite.p_value == 0.0


def test_few_rows_and_one_class():
    found = multicalibration([0, 0, 0], [0.1, 0.2, 0.3], features=[["a"], ["b"], ["a"]])
    assert [one.name for one in found.groups] == ["all rows"]


# --- what comes out ---------------------------------------------------------------------------


def test_the_result_is_a_value_that_prints():
    frame, p, y = rows(wrong=italy)
    found = multicalibration(y, p, features=frame)
    assert pickle.loads(pickle.dumps(found)) == found
    assert hash(found) == hash(multicalibration(y, p, features=frame))
    text = str(found)
    assert text.splitlines()[0].split() == [
        "group", "rows", "predicted", "observed", "difference", "95", "%", "interval", "p",
    ]  # fmt: skip
    assert "country = it" in text
    assert f"{found.wrong} of {found.looked_at} groups are off beyond chance" in text
    assert "country = it" in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict()))["groups"][0]["name"] == "country = it"
    assert list(found.to_frame()["name"]) == [one.name for one in found.groups]


def test_blocks_of_rows_change_nothing(monkeypatch):
    frame, p, y = rows(1000, wrong=italy)
    whole = multicalibration(y, p, features=frame, replicates=100, crossings=False)
    monkeypatch.setattr(redrawn_groups, "HELD", 1)  # few drawings at a time
    parts = multicalibration(y, p, features=frame, replicates=100, crossings=False)
    assert [one.predicted for one in parts.groups] == [one.predicted for one in whole.groups]
    assert parts.largest_expected == pytest.approx(whole.largest_expected, rel=0.1)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"features": np.zeros((3, 2))}, "y has 100 and features has 3"),
        ({"features": None}, "features must be passed"),
        ({"features": np.zeros(100)}, "table with rows and columns"),
        ({"quantiles": 1}, "quantiles must be a whole number of at least 2"),
        ({"categories": 1000}, "categories must be at most 200"),
        ({"min_rows": 0}, "min_rows"),
        ({"replicates": 10}, "replicates must be a whole number of at least 100"),
        ({"level": 1.0}, "level"),
        ({"crossings": "yes"}, "crossings must be True or False"),
        ({"weights": "some"}, "weights"),
    ],
    ids=str,
)
def test_bad_input_is_refused(wrong, match):
    frame, p, y = rows(100)
    with pytest.raises((InputError, ParameterError), match=match):
        multicalibration(y, p, **({"features": frame} | wrong))


def test_a_table_has_no_rows():
    table = ScoreTable.from_counts([0.2, 0.8], [5, 1], [1, 5])
    with pytest.raises(InputError, match="a ScoreTable came, which has none"):
        multicalibration(table, None, features=[[1]])


# --- in evaluate ------------------------------------------------------------------------------


def test_evaluate_tells_where_it_is_wrong():
    frame, p, y = rows(wrong=italy)
    found = evaluate(y, p, features=frame, level=0.9)
    assert found.groups == multicalibration(y, p, features=frame, level=0.9)
    assert "the worst is country = it" in str(found)
    assert found.to_dict()["groups"]["wrong"] == found.groups.wrong
    assert evaluate(y, p).groups is None
    assert "features:" not in str(evaluate(y, p))
    assert evaluate(y, p, features=frame, level=None).groups.level == 0.95


def test_evaluate_says_that_no_group_is_wrong():
    frame, p, y = rows(seed=1)
    found = evaluate(y, p, features=frame)
    assert f"features: none of {found.groups.looked_at} groups is off beyond chance" in str(found)


def test_evaluate_refuses_features_without_rows_or_with_several_classes():
    frame, p, y = rows(100)
    with pytest.raises(InputError, match="rows that are in memory"):
        evaluate(ScoreTable.from_counts([0.2, 0.8], [5, 1], [1, 5]), features=frame)
    with pytest.raises(InputError, match="rows that are in memory"):
        evaluate(frame.assign(y=y, p=p), "p", label="y", features=["age"])
    with pytest.raises(InputError, match="two classes, but p has more columns"):
        evaluate(np.arange(100) % 3, np.full((100, 3), 1 / 3), features=frame)
