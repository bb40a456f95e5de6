"""Whatever holds numbers and two labels comes in; everything else is refused in plain words."""

from __future__ import annotations

import decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.data.door import (
    read_binary,
    read_labels,
    read_probabilities,
    read_scores,
    read_sorted_classes,
    read_weight,
)

SCORES = [0.1, 0.4, 0.35, 0.8]
LABELS = [0, 0, 1, 1]
EXPECTED = cal.Isotonic().fit(SCORES, LABELS)

COLUMNS = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "object": lambda v: np.array(v, dtype=object),
    "pandas": pd.Series,
    "pandas-index": lambda v: pd.Series(v, index=[9, 3, 3, 1]),
    "pandas-nullable": lambda v: pd.Series(v).convert_dtypes(),
    "pandas-arrow": lambda v: pd.Series(v).convert_dtypes(dtype_backend="pyarrow"),
    "pandas-frame": lambda v: pd.DataFrame({"a": v}),
    "polars": pl.Series,
    "polars-frame": lambda v: pl.DataFrame({"a": v}),
    "arrow": pa.array,
    "arrow-chunked": lambda v: pa.chunked_array([v[:2], v[2:]]),
    "arrow-table": lambda v: pa.table({"a": v}),
    "generator": iter,
}


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_every_kind_of_column(make):
    c = cal.Isotonic().fit(make(SCORES), LABELS, make([1, 1, 1, 1]))
    assert c.map_ == EXPECTED.map_
    assert (c.calibrate(make(SCORES)) == EXPECTED.calibrate(SCORES)).all()


@pytest.mark.parametrize(
    "make", [v for k, v in COLUMNS.items() if "frame" not in k and "table" not in k]
)
@pytest.mark.parametrize(
    "pair",
    [(0, 1), (-1, 1), (1, 2), (False, True), ("no", "yes"), ("b", "a"), (0.0, 1.0), (3, 9)],
    ids=str,
)
def test_every_kind_of_label(make, pair):
    low, high = sorted(pair)
    c = cal.Isotonic().fit(SCORES, make([(low, high)[v] for v in LABELS]))
    assert c.map_ == EXPECTED.map_
    assert c.classes_.tolist() == [low, high]
    assert c.pos_label_ == high
    assert c.predict([0.05, 0.9]).tolist() == [low, high]


@pytest.mark.parametrize(
    "make",
    [
        lambda v: pd.Series(v, dtype="category"),
        lambda v: pl.Series(v, dtype=pl.Categorical),
        lambda v: pl.Series(v, dtype=pl.Enum(["no", "unused", "yes"])),
        lambda v: pa.array(v).dictionary_encode(),
        lambda v: pd.Series(v, dtype="object"),
        lambda v: np.array(v, dtype="S3").astype("U3"),
    ],
    ids=["pandas", "polars", "enum", "arrow", "object", "numpy"],
)
def test_categories_and_strings(make):
    c = cal.Isotonic().fit(SCORES, make([("no", "yes")[v] for v in LABELS]))
    assert c.map_ == EXPECTED.map_
    assert c.classes_.tolist() == ["no", "yes"]


def test_decimals_and_small_integers():
    values = [decimal.Decimal(str(v)) for v in SCORES]
    for column in (values, pl.Series(values), pa.array(values), pd.Series(values)):
        # Arrow's own cast of 0.35 may be the neighbouring float
        assert np.allclose(cal.Isotonic().fit(column, LABELS).map_.x, EXPECTED.map_.x, rtol=1e-15)
    bytes_ = np.array([1, 4, 3, 8], dtype=np.uint8)
    assert cal.Isotonic().fit(bytes_, LABELS).calibrate([200]).tolist() == [1.0]
    assert cal.Isotonic().fit(np.array(SCORES, np.float16), LABELS).calibrate([0.9]).tolist() == [
        1.0
    ]


def test_views_of_a_dict_have_its_order():
    rows = dict(zip(SCORES, LABELS, strict=True))
    assert cal.Isotonic().fit(rows.keys(), rows.values()).map_ == EXPECTED.map_


def test_whole_decimals_and_fractions_are_labels():
    for kind in (decimal.Decimal, Fraction):
        c = cal.Isotonic().fit(SCORES, [kind(label) for label in LABELS])
        assert c.map_ == EXPECTED.map_
        assert c.to_fitted().classes == (0, 1)
        assert read_sorted_classes([kind(5), kind(3), kind(4)])[0].tolist() == [3, 4, 5]


def test_long_doubles_are_doubles():
    c = cal.Isotonic().fit(np.array(SCORES, np.longdouble), np.array(LABELS, np.longdouble))
    assert c.map_ == EXPECTED.map_
    assert c.to_fitted().classes == (0.0, 1.0)


def test_predict_proba_columns_follow_pos_label():
    p = np.array(SCORES)
    both = np.column_stack((1 - p, p))
    y = np.array(["ham", "ham", "spam", "spam"])
    assert cal.Isotonic().fit(both, y).map_ == EXPECTED.map_
    for frame in (pd.DataFrame(both), pl.DataFrame(both), pa.table({"h": 1 - p, "s": p})):
        assert cal.Isotonic().fit(frame, y).map_ == EXPECTED.map_
    turned = cal.Isotonic(pos_label="ham").fit(both, y)
    assert turned.pos_label_ == "ham"
    assert turned.map_ == cal.Isotonic().fit(1 - p, [1, 1, 0, 0]).map_
    assert np.allclose(turned.predict_proba(both)[:, 0], turned.calibrate(1 - p))
    loaded = turned.to_fitted()
    assert (loaded.predict_proba(both) == turned.predict_proba(both)).all()


def raises(message):
    return pytest.raises(cal.errors.InputError, match=message)


BAD_SCORES = {
    "nan": ([0.1, np.nan, 0.3, np.nan], r"finite: 2 of 4 are NaN \(first at row 1\)"),
    "one nan": ([0.1, 0.2, 0.3, np.nan], r"1 of 4 is NaN \(first at row 3\)"),
    "inf": ([0.1, np.inf, 0.3, 0.4], r"1 of 4 is infinite \(first at row 1\)"),
    "both": ([np.nan, -np.inf, 0.3, 0.4], "1 of 4 is NaN and 1 of 4 is infinite"),
    "none": ([0.1, None, 0.3, 0.4], r"complete: 1 of 4 is missing.*row 1"),
    "strings": (["0.1", "0.2", "0.3", "0.4"], "must be numbers"),
    "one string": ([0.1, "0.2", 0.3, 0.4], "must be numbers"),
    "dates": (np.array(["2020-01-01"] * 4, dtype="datetime64[D]"), "must be numbers"),
    "complex": (np.array([1j] * 4), "Complex"),
    "empty": ([], "at least one row"),
    "scalar": (0.3, r"Pass a list: \[0.3\]"),
    "text": ("0.3", "column of values"),
    "nothing": (None, "column of values"),
    "three columns": (np.full((4, 3), 1 / 3), "CalibratedClassifier"),
    "3-d": (np.zeros((4, 2, 2)), "must be 1-d"),
    "logit pairs": (np.array([[-1.0, 2.0]] * 4), r"row 0 is \[-1.0, 2.0\].*z\[:, 1\]"),
    "nan pairs": (np.array([[0.5, np.nan]] * 4), "4 of 4 are NaN"),
    "ragged": ([[0.1], [0.2, 0.3], [0.1], [0.2]], "column of values"),
    "pandas NA": (pd.Series([0.1, None, 0.3, 0.4], dtype="Float64"), "1 of 4 is missing.*row 1"),
    "polars null": (pl.Series([0.1, None, 0.3, 0.4]), "1 of 4 is missing.*row 1"),
    "arrow null": (pa.array([0.1, None, 0.3, 0.4]), "1 of 4 is missing.*row 1"),
    "masked": (np.ma.masked_values([0.1, 9.0, 0.3, 0.4], 9.0), "1 of 4 is missing.*row 1"),
    "polars strings": (pl.Series(["a", "b", "c", "d"]), "must be numbers"),
    "lazy": (pl.LazyFrame({"a": SCORES}), r"fit_table\(cal.score_table\(frame, score"),
    "dict": (dict.fromkeys(SCORES, 1), "a dict came, of which only the keys"),
    "set": (set(SCORES), "a set came, which has no order"),
    "frozen set": (frozenset(SCORES), "a frozenset came, which has no order"),
    "beyond floats": ([0.1, 10**400, 0.3, 0.4], r"64-bit floats.*1 of 4.*row 1: 1000.*401 digits"),
    "long double": (
        np.array([1, 2, 3, "1e400"], dtype=np.longdouble),
        r"64-bit floats.*1 of 4 do not \(first at row 3: 1e\+400\)",
    ),
    "boxed long double": (
        np.array([0.1, np.longdouble("1e400"), 0.3, 0.4], dtype=object),
        r"64-bit floats.*1 of 4 do not \(first at row 1: 1e\+400\)",
    ),
    "large fraction": ([0.1, Fraction(10**400, 3), 0.3, 0.4], "64-bit floats"),
    "large decimal": ([decimal.Decimal("1e400"), 1, 2, 3], "64-bit floats"),
    "signalling NaN": ([decimal.Decimal("sNaN"), 1, 2, 3], "1 of 4 is missing.*row 0"),
    "masked value": (np.ma.masked, "a single value"),
    "boxed value": (np.array(None), "a single value"),
    "two columns of one name": (
        pd.DataFrame([[0.1, 0.9]] * 4, columns=["a", "a"]),
        "different names, but several are called 'a'",
    ),
    "used up": (iter(()), "an iterator can be read only once"),
    "mixed objects": (np.array([0.1, pd.NA, 0.3, 0.4], dtype=object), "1 of 4 is missing"),
}


@pytest.mark.parametrize(("scores", "message"), BAD_SCORES.values(), ids=BAD_SCORES)
def test_bad_scores_are_refused_at_fit_and_at_predict(scores, message):
    with raises(message):
        cal.Platt().fit(scores, LABELS)
    for predict in (
        EXPECTED.calibrate,
        EXPECTED.predict_proba,
        EXPECTED.predict,
        EXPECTED.to_fitted().calibrate,
        EXPECTED.to_fitted().predict_proba,
    ):
        with raises(message):
            predict(scores)


def test_sparse_scores_are_refused():
    from scipy.sparse import csr_matrix

    with raises("toarray"):
        cal.Platt().fit(csr_matrix([[0.1], [0.2]]), [0, 1])


BAD_LABELS = {
    "beyond soft": ([0.1, 0.9, 1.2, 0.8], "soft labels.*1 of 4 are outside.*row 2: 1.2"),
    "soft objects": (np.array([0.3, 0.7, 0.3, 0.7], dtype=object), "soft labels"),
    "soft column": (pd.Series([0.3, 0.7, 0.3, 0.7], dtype=object), "soft labels"),
    "three": ([0, 1, 2, 1], "three came: 0, 1 and 2.*CalibratedClassifier"),
    "three strings": (["a", "b", "c", "a"], "three came"),
    "nan": ([0, 1, np.nan, 1], "Input y contains NaN.*row 2"),
    "inf": ([0, 1, np.inf, 1], "infinity"),
    "none": ([0, 1, None, 1], "1 of 4 is missing.*row 2"),
    "none among strings": (["a", None, "b", "a"], "1 of 4 is missing.*row 1"),
    "null": (pl.Series([0, 1, None, 1]), "1 of 4 is missing"),
    "nan string": (pd.Series(["a", "b", None, "a"]), "1 of 4 is missing"),
    "one class": ([5, 5, 5, 5], "only one class came: 5.*classes="),
    "one string": (["a"] * 4, "only one class came: 'a'.*classes="),
    "short": ([0, 1, 1], "scores has 4 and y has 3"),
    "empty": ([], "at least one row"),
    "2-d": (np.zeros((4, 2)), "1-d"),
    "unordered": (np.array([1, "a", 1, "a"], dtype=object), "cannot be ordered"),
    "complex": (np.array([1j, 0, 1j, 0]), "Complex"),
    "two columns": (pd.DataFrame({"a": LABELS, "b": LABELS}), "one column.*'a', 'b'"),
    "dict": (dict.fromkeys(range(4), 1), "a dict came"),
    "set": ({0, 1}, "a set came"),
    "soft fractions": ([Fraction(1, 3), 1, 1, 1], r"soft labels\) came, such as Fraction\(1, 3\)"),
    "soft decimals": ([decimal.Decimal("0.5"), 1, 1, 1], "soft labels"),
    "soft and words": (np.array([0.5, "a", 0.5, "a"], dtype=object), "soft labels"),
    "signalling NaN": ([decimal.Decimal("sNaN"), 1, 0, 0], "1 of 4 is missing"),
    "no time": (np.array(["NaT", "2020-01-01"] * 2, "M8[D]"), "2 of 4 are missing"),
    "lists": (np.array([[0], [1, 2], [0], [1]], dtype=object), "a list came among them"),
    "a tuple": (["a", "b", (1, 2), "a"], "a tuple came among them|column of values"),
    "large and NumPy": (np.array([np.float64(0), 10**400, 0, 1], dtype=object), "three came"),
    "boxed signalling NaN": (pd.Series([decimal.Decimal("sNaN"), 1, 0, 0]), "1 of 4 is missing"),
    "three large": ([10**400, 0, 1, 0], r"three came: 10+\.\.\.0+, 0 and 1"),
}


@pytest.mark.parametrize(("y", "message"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_bad_labels_are_refused(y, message):
    with raises(message):
        cal.Isotonic().fit(SCORES, y)


BAD_WEIGHTS = {
    "negative": ([1, -1, 1, -2], r"2 of 4 are negative \(first at row 1\)"),
    "nan": ([1, np.nan, 1, 1], "sample_weight must be finite: 1 of 4 is NaN"),
    "all zero": ([0, 0, 0, 0], "all 4 are zero"),
    "short": ([1, 1], "y has 4 and sample_weight has 2"),
    "strings": (["a", "b", "c", "d"], "must be numbers"),
    "dict": (dict.fromkeys(range(4), 1), "a dict came"),
    "set": ({1, 2, 3, 4}, "a set came"),
    "beyond floats": ([10**400, 1, 1, 1], "64-bit floats"),
    "2-d": (np.ones((4, 2)), "1-d"),
    "huge": ([1e200, 1, 1, 1], r"largest value from 1e-150 to 1e\+100, but it is 1e\+200"),
    "tiny": ([1e-200, 1e-300, 0, 1e-200], "but it is 1e-200. Divide all weights by their mean"),
}


@pytest.mark.parametrize("pair", [("Yes", "yes"), ("yes", "yes "), ("a  b", "A b")])
def test_spellings_of_one_word_are_not_two_classes(pair, tmp_path):
    scores, y = [0.1, 0.4, 0.6, 0.9], [*pair, *pair]
    frame = pl.DataFrame({"score": scores, "y": y})
    file = tmp_path / "rows.jsonl"
    frame.write_ndjson(file)
    for ask in (
        lambda: read_labels(y),
        lambda: read_labels(np.array(y, dtype=object)),
        lambda: cal.Platt().fit(scores, y),
        lambda: cal.evaluate(y, scores),
        lambda: cal.score_table(frame, score="score", label="y"),
        lambda: cal.score_table(frame.lazy(), score="score", label="y"),
        lambda: cal.score_table(file, score="score", label="y"),
    ):
        with pytest.raises(cal.errors.InputError, match="differ only in case"):
            ask()
    assert cal.Platt(classes=list(pair)).fit(scores, y).classes_.tolist() == sorted(pair)


@pytest.mark.parametrize(("w", "message"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_bad_weights_are_refused(w, message):
    with raises(message):
        cal.Isotonic().fit(SCORES, LABELS, w)


def test_zero_weight_is_absent_but_its_label_counts():
    c = cal.Isotonic().fit([0.1, 0.9, 0.5], ["a", "b", "a"], [1.0, 0.0, 1.0])
    assert c.classes_.tolist() == ["a", "b"]
    assert c.calibrate([0.9]).tolist() == [0.0]
    dropped = cal.Platt().fit([0.1, 0.4, 0.3, 0.8, 55.0], [0, 0, 1, 1, 0], [1, 1, 1, 1, 0])
    assert dropped.scale_ == "logit"


@pytest.mark.parametrize(
    ("value", "classes"),
    [
        (0, [0, 1]),
        (1, [0, 1]),
        (-1, [-1, 1]),
        (True, [False, True]),
        (False, [False, True]),
        (1.0, [0.0, 1.0]),
    ],
)
def test_known_partners_of_a_single_class(value, classes):
    c = cal.Histogram().fit([0.2, 0.3], [value, value])
    assert c.classes_.tolist() == classes
    assert c.calibrate([0.2])[0] == (1.0 if value == classes[1] else 0.0)


def test_classes_name_the_partner():
    c = cal.Isotonic(classes=["good", "bad"], pos_label="bad").fit([0.2, 0.3], ["bad", "bad"])
    assert c.classes_.tolist() == ["bad", "good"]
    assert c.calibrate([0.2]).tolist() == [1.0]
    assert c.predict_proba([0.2]).tolist() == [[1.0, 0.0]]
    with raises("only the classes"):
        cal.Isotonic(classes=["good", "bad"]).fit([0.2, 0.3], ["bad", "ugly"])
    with raises("two different labels"):
        cal.Isotonic(classes=["bad"]).fit([0.2, 0.3], ["bad", "bad"])
    with raises("two different labels"):
        cal.Isotonic(classes=5).fit([0.2, 0.3], ["bad", "bad"])
    with raises("pos_label must be one of"):
        cal.Isotonic(pos_label="spam").fit([0.2, 0.3], ["a", "b"])
    with raises("pos_label must be one of"):
        cal.Isotonic(pos_label="1").fit([0.2, 0.3], [0, 1])


def test_classes_that_the_type_of_y_cannot_hold():
    y = np.zeros(4, dtype=np.int8)
    assert cal.Isotonic(classes=[0, 300]).fit(SCORES, y).classes_.tolist() == [0, 300]
    assert cal.Isotonic(classes=[-1, 0]).fit(SCORES, y.astype("u1")).classes_.tolist() == [-1, 0]
    assert cal.Isotonic(classes=pd.Series([0, 7])).fit(SCORES, y).classes_.tolist() == [0, 7]
    for wrong, words in (
        ([0, 0.5], "fractions.*such as 0.5"),
        ([0, np.nan], "missing|such as nan"),
        ({0: 1, 1: 2}, "a dict came"),
        ({0, 1}, "a set came"),
        ([[0, 1]], "list of labels"),
    ):
        with raises(words):
            cal.Isotonic(classes=wrong).fit(SCORES, y)
        with raises(words):
            read_sorted_classes(y, classes=wrong)


def test_a_table_has_its_own_way_in():
    table = cal.ScoreTable.from_arrays(SCORES, LABELS)
    makers = (cal.Platt, cal.AutoCalibrator, cal.Temperature, cal.ACP, cal.SegmentedCalibrator)
    for make in (*makers, cal.VectorScaling, cal.SimilarityBinning):
        with raises(r"a ScoreTable came.*fit_table\(table\)"):
            make().fit(table)
        with raises("requires y to be passed"):
            make().fit(SCORES)


def test_a_column_vector_of_labels_warns_as_scikit_learn_does():
    from sklearn.exceptions import DataConversionWarning

    with pytest.warns(DataConversionWarning, match="column-vector"):
        c = cal.Isotonic().fit(SCORES, np.array(LABELS)[:, None])
    assert c.map_ == EXPECTED.map_


def test_percentages_are_no_probabilities():
    with raises(r"4 of 4 are not \(first at row 0: 10\).*Divide percentages by 100"):
        read_probabilities([10, 20, 30, 40])


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from(["x", "y"])), min_size=1, max_size=50))
def test_labels_are_coded_by_equality(pairs):
    s, y = zip(*pairs, strict=True)
    rows = read_binary(s, y, classes=["x", "y"])
    assert rows.positive.tolist() == [v == "y" for v in y]
    assert read_scores(s).tolist() == [v + 0.0 for v in s]
    assert read_labels(y, classes=["x", "y"], pos_label="x").positive_column == 0


def test_inputs_are_never_changed():
    s, y, w = np.array(SCORES), np.array(LABELS), np.ones(4)
    before = s.copy(), y.copy(), w.copy()
    cal.Platt().fit(s, y, w).calibrate(s)
    for now, then in zip((s, y, w), before, strict=True):
        assert (now == then).all()
    assert read_weight(None, 4) is None


def test_large_finite_scores_whose_sum_overflows_are_fine():
    assert cal.Isotonic().fit([1.7e308, 1.7e308, -1.7e308], [1, 1, 0]).calibrate(
        [0.0]
    ).tolist() == [1.0]


def test_a_failed_refit_leaves_the_old_fit_whole():
    c = cal.Isotonic().fit(SCORES, ["no", "no", "yes", "yes"])
    with raises("three came"):
        c.fit(SCORES, ["a", "b", "c", "d"])
    c.set_params(interpolation="no such word")
    with pytest.raises(cal.errors.ParameterError):
        c.fit(SCORES, ["a", "a", "b", "b"])
    assert c.classes_.tolist() == ["no", "yes"]
    assert c.map_ == EXPECTED.map_


ODD = [
    *(0, 1, 0.5, -1, 1e308, 5e-324, float("nan"), float("inf"), None, "a", "1", b"x", True),
    *(10**400, -(10**400), 2**64, decimal.Decimal("0.5"), decimal.Decimal("sNaN"), Fraction(1, 3)),
    *(Fraction(10**400, 3), 1j, np.float32(0.3), np.longdouble("1e400"), np.uint64(2**64 - 1)),
    *(
        np.datetime64("NaT", "s"),
        pd.NA,
        pd.NaT,
        [],
        [1],
        (1, 2),
        {},
        {1},
        object(),
        np.array([1.0, 2.0]),
    ),
]
MADE = [
    list,
    tuple,
    iter,
    pd.Series,
    lambda v: dict(enumerate(v)),
    lambda v: pd.Series(v, dtype="O"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(400))
def test_odd_values_are_taken_or_refused_in_our_words(seed):
    rng = np.random.default_rng(seed)
    columns = [[0.1, 0.2, 0.4, 0.6, 0.8, 0.9], [0, 1, 0, 1, 1, 0], [1.0, 2.0, 1.0, 0.5, 1.0, 3.0]]
    for _ in range(rng.integers(1, 4)):
        columns[rng.integers(3)][rng.integers(6)] = ODD[rng.integers(len(ODD))]
    try:
        scores, y, weight = (MADE[rng.integers(len(MADE))](column) for column in columns)
    except OverflowError:
        pytest.skip("pandas 2.2 makes no Series of whole numbers beyond floats")
    try:
        if seed % 3:
            p = cal.Platt().fit(scores, y, weight).calibrate([0.1, 0.9])
            assert ((p >= 0.0) & (p <= 1.0)).all()
        else:
            cal.evaluate(y, scores, sample_weight=weight, level=None)
    except (cal.errors.InputError, cal.errors.ParameterError):
        return


def test_whole_numbers_of_128_bits_are_numbers():
    pl = pytest.importorskip("polars")
    wide = pl.Series([2**70 + 1, -5, 3], dtype=pl.Int128)
    assert read_scores(wide).tolist() == [float(2**70 + 1), -5.0, 3.0]
    assert read_weight(pl.Series([1, 2], dtype=pl.Int128), 2).tolist() == [1.0, 2.0]
