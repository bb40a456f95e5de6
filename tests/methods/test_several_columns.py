"""Segments of several columns: each is shrunk to the coarser one that it is a part of."""

from __future__ import annotations

import json
import sqlite3

import duckdb
import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pytest

import calibrant as cal
from calibrant.data.score_table import ScoreTable
from calibrant.errors import CalibrationWarning, InputError
from calibrant.maps import Identity, Logistic, Piecewise, Segmented
from calibrant.rules.plan.interpreter import evaluate
from calibrant.rules.plan.nodes import PlanTarget
from twins import segment as twin

RNG = np.random.default_rng(5)
N = 1500
COUNTRY = RNG.choice(["de", "fr", "it"], N, p=[0.5, 0.3, 0.2])
PRODUCT = RNG.choice(["card", "loan", "cash", "rare"], N, p=[0.5, 0.3, 0.195, 0.005])
CODE = np.array([{"card": 1, "loan": 2, "cash": 3, "rare": 4}[p] for p in PRODUCT])
SCORES = RNG.beta(1, 2, N).round(2).clip(0.01, 0.99)
SHIFT = {"de": 0.0, "fr": 1.0, "it": -1.0, "card": 0.0, "loan": 0.8, "cash": -0.8, "rare": 0.0}
Z = np.log(SCORES / (1 - SCORES)) + np.array(
    [SHIFT[c] + SHIFT[p] for c, p in zip(COUNTRY, PRODUCT, strict=True)]
)
Y = RNG.random(N) < 1 / (1 + np.exp(-Z))
NEW = {"country": ["fr", "fr", "es", "de"], "product": ["card", "new", "card", "rare"]}
FORMS = {
    "pandas": pd.DataFrame({"a": COUNTRY, "b": PRODUCT}),
    "polars": pl.DataFrame({"a": COUNTRY, "b": PRODUCT}),
    "arrow": pl.DataFrame({"a": COUNTRY, "b": PRODUCT}).to_arrow(),
    "dict": {"a": COUNTRY, "b": PRODUCT},
    "list": [COUNTRY, PRODUCT],
    "lists": [COUNTRY.tolist(), PRODUCT.tolist()],
    "series": [pd.Series(COUNTRY), pd.Series(PRODUCT)],
    "matrix": np.column_stack((COUNTRY, PRODUCT)),
    "tuples": list(zip(COUNTRY.tolist(), PRODUCT.tolist(), strict=True)),
    "iterator": None,
    "index": pd.MultiIndex.from_arrays([COUNTRY, PRODUCT]).to_numpy(),
}
WAYS = {
    "cv": {},
    "number": {"shrinkage": 20.0},
    "platt": {"calibrator": "platt", "shrinkage": 40.0},
    "isotonic": {"calibrator": "isotonic", "shrinkage": 30.0},
    "holdout": {"cv": 0.3},
}


def fitted(**options):
    return cal.SegmentedCalibrator(**options).fit(SCORES, Y, segments=[COUNTRY, PRODUCT])


@pytest.fixture(scope="module", params=list(WAYS))
def made(request):
    return fitted(**WAYS[request.param])


# --- what is fitted -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMS)
def test_several_columns_come_in_many_forms(name):
    def given():
        return zip(COUNTRY, PRODUCT, strict=True) if name == "iterator" else FORMS[name]

    c = cal.SegmentedCalibrator(shrinkage=5.0).fit(SCORES, Y, segments=given())
    expected = fitted(shrinkage=5.0)
    assert c.map_ == expected.map_
    p = expected.calibrate(SCORES, segments=[COUNTRY, PRODUCT])
    assert np.array_equal(c.calibrate(SCORES, segments=given()), p)


def test_a_frame_of_one_column_is_a_column():
    one = cal.SegmentedCalibrator(shrinkage=1.0).fit(SCORES, Y, segments=COUNTRY)
    for same in (pd.DataFrame({"a": COUNTRY}), {"a": COUNTRY}, [COUNTRY]):
        two = cal.SegmentedCalibrator(shrinkage=1.0).fit(SCORES, Y, segments=same)
        assert one.map_ == two.map_
        assert two.map_.to_dict()["version"] == 3


def test_against_the_twin_with_a_given_shrinkage():
    """Row by row: the country is shrunk to all rows, the product to its country."""
    kappa = 25.0
    c = fitted(shrinkage=kappa, min_rows=0)
    common = c.map_.default
    w = np.ones(N)
    p = common(SCORES)
    for levels in ((COUNTRY,), (COUNTRY, PRODUCT)):
        keys = list(zip(*levels, strict=True))
        alone = len(levels) == 1
        after = p.copy()
        for key in set(keys):
            rows = np.array([own == key for own in keys])
            a, b = twin.sigmoid_of_common(p[rows], Y[rows].astype(int), w[rows])
            share = rows.sum() / (rows.sum() + kappa)
            z = np.log(p[rows]) - np.log1p(-p[rows])
            own = 1 / (1 + np.exp(-(a + b * z)))
            after[rows] = share * own + (1 - share) * p[rows]
        assert alone or len(set(keys)) == 12
        p = after
    found = c.calibrate(SCORES, segments=[COUNTRY, PRODUCT])
    np.testing.assert_allclose(found, p, atol=2e-6)


def test_the_first_column_is_fitted_as_if_it_were_alone(made):
    one = cal.SegmentedCalibrator(**made.get_params()).fit(SCORES, Y, segments=COUNTRY)
    for key in one.map_.keys:
        i, j = one.map_.keys.index(key), made.map_.keys.index((key,))
        assert one.map_.maps[i] == made.map_.maps[j]
        assert one.map_.weights[i] == made.map_.weights[j]
    assert made.shrinkage_[0] == one.shrinkage_
    assert made.map_.default == one.map_.default


def test_unseen_segments_have_the_finest_map_that_is_known(made):
    p = made.calibrate([0.3] * 4, segments=NEW)
    assert p[1] == made.map_.member(("fr",))([0.3])[0] != p[0]
    assert p[2] == made.map_.default([0.3])[0]
    one = cal.SegmentedCalibrator(**made.get_params()).fit(SCORES, Y, segments=COUNTRY)
    np.testing.assert_allclose(p[1], one.calibrate([0.3], segments=["fr"])[0], atol=1e-15)


@pytest.mark.parametrize("name", WAYS)
def test_a_second_column_of_one_value_changes_nothing(name):
    """Exactly: a segment that is alone in its coarser one has no map of its own."""
    one = cal.SegmentedCalibrator(**WAYS[name]).fit(SCORES, Y, segments=COUNTRY)
    both = [COUNTRY, np.full(N, "all")]
    two = cal.SegmentedCalibrator(**WAYS[name]).fit(SCORES, Y, segments=both)
    expected = one.calibrate(SCORES, segments=COUNTRY)
    assert np.array_equal(two.calibrate(SCORES, segments=both), expected)
    reasons = {s.reason for s in two.segments_ if len(s.key) == 2}
    assert reasons == {"the only one in its coarser segment"}


def test_three_columns_and_numbers():
    year = RNG.integers(2020, 2023, N)
    c = cal.SegmentedCalibrator(shrinkage=10.0).fit(SCORES, Y, segments=[year, COUNTRY, CODE])
    assert c.map_.columns == 3
    assert {type(key[0]) for key in c.map_.seen} == {int}
    assert c.map_.find([[2020], ["fr"], [9]]) == c.map_.seen.index((2020, "fr"))
    p = c.calibrate([0.3], segments=[[2020], ["fr"], [1]])
    assert p[0] == c.calibrate([0.3], segments=[(2020.0, "fr", True)])[0]


def test_tables_and_rows_agree():
    tables = {}
    for key in sorted(set(zip(COUNTRY.tolist(), PRODUCT.tolist(), strict=True))):
        rows = (key[0] == COUNTRY) & (key[1] == PRODUCT)
        tables[key] = ScoreTable.from_arrays(SCORES[rows], Y[rows])
    assert cal.SegmentedCalibrator().fit_tables(tables).map_ == fitted().map_
    frame = pl.LazyFrame({"s": SCORES, "y": Y.astype(int), "a": COUNTRY, "b": PRODUCT})
    found = cal.segment_tables(frame, score="s", label="y", segment=["a", "b"])
    assert found.keys() == tables.keys()
    assert all(found[key] == tables[key] for key in tables)
    cells = cal.segment_tables(frame, score="s", label="y", segment=["a", "b"], cells=64)
    assert {k: t.total for k, t in cells.items()} == {k: t.total for k, t in tables.items()}


def test_records_and_provenance_speak_of_all_columns():
    c = fitted()
    assert [s.key for s in c.segments_][:3] == [("de",), ("de", "card"), ("de", "cash")]
    assert len(c.shrinkage_) == len(c.path_) == 2
    assert c.to_fitted().provenance["segments"] == len(c.segments_) == 15


# --- does it help ---------------------------------------------------------------------------------


def nested(seed, country, product, rows=12_000):
    """Truth of 8 countries with 12 products each, most of them small; labels to learn and judge."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 8, rows)
    b = np.minimum(rng.geometric(0.25, rows), 12) - 1
    up = rng.normal(0, country, 8)[a] + rng.normal(0, product, (8, 12))[a, b]
    z = rng.normal(-1, 1.5, rows).round(1)
    p = 1 / (1 + np.exp(-(z + up)))
    s = 1 / (1 + np.exp(-z))
    return s, a, b, p, rng.random(rows) < p


def loss(p, truth):
    return float(-np.mean(truth * np.log(p) + (1 - truth) * np.log1p(-p)))


def losses(seed, country, product):
    s, a, b, truth, y = nested(seed, country, product)
    half = slice(0, len(s) // 3)
    rest = slice(len(s) // 3, None)
    pooled = cal.BLS().fit(s[half], y[half]).calibrate(s[rest])
    one = cal.SegmentedCalibrator().fit(s[half], y[half], segments=a[half])
    two = cal.SegmentedCalibrator().fit(s[half], y[half], segments=[a[half], b[half]])
    joint = cal.SegmentedCalibrator().fit(s[half], y[half], segments=a[half] * 100 + b[half])
    return (
        loss(pooled, truth[rest]),
        loss(one.calibrate(s[rest], segments=a[rest]), truth[rest]),
        loss(two.calibrate(s[rest], segments=[a[rest], b[rest]]), truth[rest]),
        loss(joint.calibrate(s[rest], segments=a[rest] * 100 + b[rest]), truth[rest]),
    )


@pytest.mark.full
def test_two_columns_help_where_both_matter():
    """Log loss of all rows ≥ of countries ≥ of countries and products, in each of three sets; and
    shrinking to the country beats shrinking all combinations to one map."""
    for seed in range(3):
        pooled, one, two, joint = losses(seed, 0.8, 0.6)
        assert two < one < pooled
        assert two < joint


@pytest.mark.full
def test_two_columns_cost_nothing_where_they_do_not_matter():
    for seed in range(3):
        pooled, one, two, _ = losses(seed, 0.0, 0.0)
        assert one == pooled
        assert two == pooled


@pytest.mark.full
def test_products_that_do_not_matter_leave_the_countries():
    for seed in range(3):
        pooled, one, two, _ = losses(seed, 0.8, 0.0)
        assert one < pooled
        assert two == one


# --- files, exports, frames -----------------------------------------------------------------------


def test_save_and_load(made, tmp_path):
    cal.save(made, tmp_path / "c.json")
    loaded = cal.load(tmp_path / "c.json")
    assert loaded.map == made.map_
    assert json.loads((tmp_path / "c.json").read_text())["map"]["version"] == 4
    both = [COUNTRY, PRODUCT]
    found = loaded.calibrate(SCORES, segments=both)
    assert np.array_equal(found, made.calibrate(SCORES, segments=both))


def test_the_plan_and_the_maps_of_segments_agree(made):
    p = made.calibrate(SCORES, segments=[COUNTRY, PRODUCT])[:300]
    rows = list(zip(COUNTRY[:300].tolist(), PRODUCT[:300].tolist(), strict=True))
    plan = made.map_.plan(PlanTarget("test", ""))
    np.testing.assert_allclose(evaluate(plan, SCORES[:300], rows), p, atol=1e-15)
    own = [made.map_.member(key)(SCORES[i : i + 1])[0] for i, key in enumerate(rows)]
    np.testing.assert_allclose(own, p, atol=1e-15)
    shifted = made.map_.shifted(np.array(3.0))(SCORES[:300], rows)
    np.testing.assert_allclose(shifted / (1 - shifted), 3 * p / (1 - p), rtol=1e-9)
    decided = made.map_.decision(0.4)
    if decided is not None:
        assert np.array_equal(decided(SCORES[:300], rows) == 1.0, p >= 0.4)


def rows_to_apply():
    rows = {"s": [*SCORES[:200], 0.3, 0.3, 0.3, 0.3]}
    rows["a"] = [*COUNTRY[:200].tolist(), *NEW["country"]]
    rows["b"] = [*PRODUCT[:200].tolist(), *NEW["product"]]
    return rows


@pytest.mark.parametrize("form", ["expression", "lookup"])
@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_sql(made, form, engine):
    long = made.map_.input == "default"  # maps of maps: the text of one is in that of the next
    if long and (form == "expression" or sqlite3.sqlite_version_info < (3, 46)):
        form, engine = "lookup", "duckdb"
    rows = rows_to_apply()
    expected = made.calibrate(rows["s"], segments=[rows["a"], rows["b"]])
    frame = pd.DataFrame(rows | {"id": np.arange(204)})
    sql = cal.to_sql(
        made, dialect=engine, column="s", segment=["a", "b"], form=form, table="t", keep=["id"]
    )
    *before, last = sql.statements or (f"SELECT id, {sql} AS probability FROM t AS t",)
    if engine == "duckdb":
        db = duckdb.connect()
        db.register("t", frame)
        for statement in before:
            db.execute(statement)
        found = db.execute(last).fetchall()
    else:
        lite = sqlite3.connect(":memory:")
        frame.to_sql("t", lite, index=False)
        for statement in before:
            lite.execute(statement)
        found = lite.execute(last).fetchall()
        lite.close()
    got = [p for _, p in sorted(found)]
    np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize(
    "dialect",
    ["spark", "bigquery", "snowflake", "postgres", "mysql", "tsql", "clickhouse", "trino"],
)
def test_all_dialects_name_both_columns(dialect):
    c = fitted(calibrator="platt", shrinkage=20.0)
    for form in ("expression", "lookup"):
        sql = cal.to_sql(c, dialect=dialect, segment=["a", "b"], form=form)
        assert sql.count("IS NOT NULL") == 2
    with pytest.raises(InputError, match="segments of 2 columns, from coarse to fine, but 1 came"):
        cal.to_sql(c, dialect=dialect, segment="a")


def test_sql_gives_null_where_a_segment_is_null():
    c = fitted(calibrator="platt", shrinkage=20.0)
    sql = cal.to_sql(c, column="s", segment=["a", "b"], form="expression")
    db = duckdb.connect()
    rows = "(VALUES (0.3, 'fr', NULL), (0.3, NULL, 'card'), (0.3, 'fr', 'card')) AS t(s, a, b)"
    found = [p for (p,) in db.execute(f"SELECT {sql} FROM {rows}").fetchall()]
    assert found[:2] == [None, None]
    assert found[2] is not None


def test_sql_with_numbers_and_a_threshold():
    c = cal.SegmentedCalibrator(shrinkage=9.0).fit(SCORES, Y, segments=[COUNTRY, CODE])
    sql = cal.to_sql(c, column="s", segment=["a", "b"], threshold=0.4)
    db = duckdb.connect()
    db.register("t", pd.DataFrame({"s": SCORES, "a": COUNTRY, "b": CODE}))
    found = np.array([p for (p,) in db.execute(f"SELECT {sql} FROM t").fetchall()])
    assert np.array_equal(found == 1, c.calibrate(SCORES, segments=[COUNTRY, CODE]) >= 0.4)


def test_python(made):
    rows = rows_to_apply()
    module: dict = {}
    exec(cal.to_python(made), module)
    found = [module["calibrate"](*row) for row in zip(*rows.values(), strict=True)]
    expected = made.calibrate(rows["s"], segments=[rows["a"], rows["b"]])
    np.testing.assert_allclose(found, expected, atol=1e-14)
    exec(cal.to_python(made, threshold=0.4), module)
    decided = [module["decide"](*row) for row in zip(*rows.values(), strict=True)]
    assert decided == (expected >= 0.4).tolist()
    with pytest.raises(ValueError, match="must be among text"):
        module["calibrate"](0.3, "fr", 7)


def test_onnx(made):
    rows = rows_to_apply()
    model = cal.to_onnx(made)
    assert [value.name for value in model.graph.input] == ["score", "segment_1", "segment_2"]
    session = onnxruntime.InferenceSession(model.SerializeToString())
    given = {"score": np.array(rows["s"])}
    given |= {"segment_1": np.array(rows["a"], object), "segment_2": np.array(rows["b"], object)}
    [found] = session.run(None, given)
    expected = made.calibrate(rows["s"], segments=[rows["a"], rows["b"]])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_onnx_with_numbers():
    c = cal.SegmentedCalibrator(shrinkage=9.0).fit(SCORES, Y, segments=[CODE, COUNTRY])
    session = onnxruntime.InferenceSession(cal.to_onnx(c).SerializeToString())
    given = {"score": SCORES, "segment_1": CODE, "segment_2": COUNTRY.astype(object)}
    [found] = session.run(None, given)
    np.testing.assert_allclose(found, c.calibrate(SCORES, segments=[CODE, COUNTRY]), atol=1e-12)


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "duckdb"])
def test_frames(made, kind):
    rows = rows_to_apply()
    expected = made.calibrate(rows["s"], segments=[rows["a"], rows["b"]])
    frame = pl.DataFrame(rows).with_row_index("id")
    given = {
        "polars": lambda: frame,
        "lazy": frame.lazy,
        "pandas": lambda: pd.DataFrame(frame.to_dict(as_series=False)),
        "duckdb": lambda: duckdb.connect().from_arrow(frame.to_arrow()),
    }[kind]()
    result = cal.add_probabilities(made, given, score="s", segment=["a", "b"])
    if kind == "duckdb":
        found = [row[-1] for row in sorted(result.fetchall())]
    else:
        whole = result.collect() if kind == "lazy" else result
        found = list(whole["probability"])
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("lazy", [False, True])
def test_frames_with_gaps_numbers_and_new_segments(lazy):
    c = cal.SegmentedCalibrator(shrinkage=9.0).fit(SCORES, Y, segments=[COUNTRY, CODE])
    frame = pl.DataFrame({"s": [0.3] * 3, "a": ["fr", "fr", None], "b": [1, None, 1]})
    given = frame.lazy() if lazy else frame
    columns = {"score": "s", "segment": ["a", "b"]}
    with pytest.raises(InputError, match="segment column 'a'"):
        cal.add_probabilities(c, given, **columns)
    made = cal.add_probabilities(c, given, **columns, on_missing="null")
    p = (made.collect() if lazy else made)["probability"].to_list()
    assert p[1:] == [None, None]
    assert abs(p[0] - c.calibrate([0.3], segments=[["fr"], [1]])[0]) < 1e-12
    new = pl.DataFrame({"s": [0.3] * 3, "a": ["fr", "fr", "es"], "b": [1, 9, 9]})
    given = new.lazy() if lazy else new
    with pytest.raises(InputError, match=r"2 of 3 rows .*\('.*', 9\).*\('de', 1\)"):
        cal.add_probabilities(c, given, **columns, on_new_segment="error")
    with pytest.warns(CalibrationWarning, match="map of the coarser segment"):
        cal.add_probabilities(c, given, **columns)
    text = pl.DataFrame({"s": [0.3], "a": ["fr"], "b": ["card"]})
    with pytest.raises(InputError, match="'b' is text"):
        cal.add_probabilities(c, text.lazy() if lazy else text, **columns)


# --- what is refused ------------------------------------------------------------------------------


def test_as_many_columns_as_in_the_fit():
    two, one = fitted(shrinkage=1.0), cal.SegmentedCalibrator(shrinkage=1.0)
    one.fit(SCORES, Y, segments=COUNTRY)
    with pytest.raises(InputError, match=r"must be 2 columns, as in the fit .* but 1 came"):
        two.calibrate(SCORES, segments=COUNTRY)
    with pytest.raises(InputError, match="must be one column, as in the fit, but 2 came"):
        one.calibrate(SCORES, segments=[COUNTRY, PRODUCT])
    rows = pl.LazyFrame({"s": SCORES, "a": COUNTRY, "b": PRODUCT})
    with pytest.raises(InputError, match="segments of one column, but 2 came"):
        cal.add_probabilities(one, rows, score="s", segment=["a", "b"])
    with pytest.raises(InputError, match="segments of 2 columns"):
        cal.add_probabilities(two, rows, score="s", segment="a")
    with pytest.raises(InputError, match="must differ"):
        cal.add_probabilities(two, rows, score="s", segment=["a", "a"])


@pytest.mark.parametrize("name", ["pandas", "polars", "arrow", "dict"])
def test_columns_with_names_are_found_in_any_order(name, tmp_path):
    def swapped(frame):
        return {"b": PRODUCT, "a": COUNTRY} if name == "dict" else frame[["b", "a"]]

    given = pl.from_arrow(FORMS[name]) if name == "arrow" else FORMS[name]
    c = cal.SegmentedCalibrator().fit(SCORES, Y, segments=given)
    expected = c.calibrate(SCORES, segments=[COUNTRY, PRODUCT])
    cal.save(c, tmp_path / "c.json")
    for one in (c, cal.load(tmp_path / "c.json")):
        np.testing.assert_array_equal(one.calibrate(SCORES, segments=swapped(given)), expected)
        proba = one.predict_proba(SCORES, segments=swapped(given))
        np.testing.assert_array_equal(proba[:, 1], expected)
        other = {"x": COUNTRY, "y": PRODUCT}  # names that say nothing: by place
        np.testing.assert_array_equal(one.calibrate(SCORES, segments=other), expected)
        with pytest.raises(InputError, match=r"must be the columns 'a', 'b'.*'b', 'x' came"):
            one.calibrate(SCORES, segments={"b": COUNTRY, "x": PRODUCT})


def test_wrong_columns():
    for wrong, words in (
        ([COUNTRY, PRODUCT[:-1]], "lengths are"),
        ([COUNTRY[:-1], PRODUCT[:-1]], "segments"),
        ([("a", "b"), ("a",)], "as many values as the first"),
        ([COUNTRY, np.where(PRODUCT == "card", None, PRODUCT)], "complete"),
        ([COUNTRY, SCORES], "whole numbers"),
    ):
        with pytest.raises(InputError, match=words):
            cal.SegmentedCalibrator().fit(SCORES, Y, segments=wrong)
    table = ScoreTable.from_arrays([0.1, 0.9], [0, 1])
    for tables in ({("a",): table}, {"a": table, ("a", "b"): table}):
        with pytest.raises(InputError, match="all tuples of the same number of values"):
            cal.SegmentedCalibrator().fit_tables(tables)


def test_text_where_numbers_are_known_is_refused_by_column():
    c = cal.SegmentedCalibrator(shrinkage=1.0).fit(SCORES, Y, segments=[COUNTRY, CODE])
    with pytest.raises(InputError, match=r"segments \(column 2\) must be numbers"):
        c.calibrate(SCORES, segments=[COUNTRY, PRODUCT])


def test_most_rows_of_new_products_are_a_warning():
    c = fitted(shrinkage=1.0)
    with pytest.warns(CalibrationWarning, match=r"3 of 3 rows .* map of the coarser segment"):
        c.calibrate([0.1, 0.2, 0.3], segments=[["de", "fr", "it"], ["new"] * 3])


def test_the_map_refuses_keys_of_both_kinds():
    for keys in (("a", ("a", "b")), (("a",),), ((),), (("a", 1.5),)):
        with pytest.raises(InputError, match="keys of a segmented map"):
            Segmented(Identity(), keys, (Identity(),) * len(keys))


def test_a_jump_after_a_sigmoid_keeps_its_side():
    """Maps of a map: borders are found on the scale of the score, on every path."""
    step = Piecewise.step([0.3, 0.6], [0.1, 0.4, 0.9])
    line = Logistic(0.3, (("z", 1.2),))
    keys = (("a",), ("a", "x"), ("b", "x"))
    m = Segmented(line, keys, (line, step, step), np.array([0.5, 0.75, 0.25]), "default")
    s = np.sort(RNG.random(400))
    for path in (("a", "x"), ("b", "x"), ("a", "y")):
        rows = [path] * len(s)
        expected = m(s, rows)
        np.testing.assert_allclose(
            evaluate(m.plan(PlanTarget("test", "")), s, rows), expected, atol=1e-14
        )


# --- where any segments are shown -----------------------------------------------------------------


def test_reports_diagrams_and_advice_name_combinations():
    both = pd.DataFrame({"a": COUNTRY, "b": CODE})
    small = CODE < 4
    names = {f"{c} / {k}" for c in ("de", "fr", "it") for k in (1, 2, 3)}
    report = cal.calibration_report(
        SCORES[small], Y[small], calibrator="platt", segments=both[small]
    )
    assert {panel.name for panel in report.panels} == names
    found = cal.diagrams.reliability_segments(Y[small], SCORES[small], both[small])
    assert set(found.names) == names
