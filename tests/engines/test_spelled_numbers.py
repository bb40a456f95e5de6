"""Numbers as people write them: decimal commas, thousands, percentages, sheets, empty cells."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.data.lazy import Names
from calibrant.engines.duckdb import Session
from calibrant.engines.files import NumberSpelling, ReadOptions
from calibrant.engines.open_engine import open_engine, read_rows
from calibrant.errors import InputError, MissingExtraError, ParameterError
from calibrant.fitting.fitted import Fitted
from calibrant.maps import Piecewise
from file_jobs import apply_file
from sheets import write_xlsx

STEP = Fitted(Piecewise.step([0.5], [0.25, 0.75]), (0, 1), 1)


def read(path, *, weight=None, role="score", **reading):
    """The scores of a file, and what is noted."""
    with open_engine(reading=ReadOptions(**reading)) as engine:
        found = read_rows(engine.rows([path], Names("s", "y", weight), role), cells="exact")
        return found, engine.notes


def make(tmp_path, words, *, sep=";", labels=(0, 1), name="s.csv"):
    """A file of scores as they are spelled, with labels that take turns."""
    text = io.StringIO()
    rows = [(word, labels[i % len(labels)]) for i, word in enumerate(words)]
    csv.writer(text, delimiter=sep).writerows([("s", "y"), *rows])
    path = tmp_path / name
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


# --- spellings that need no word ----------------------------------------------------------------

READ = {
    "decimal comma": (["0,75", "0,5", "1"], [0.5, 0.75, 1.0], "with a decimal comma: '0,75'"),
    "thousands of a comma": (["1.234,5", "12"], [12, 1234.5], "with a decimal comma: '1.234,5'"),
    "thousands of a point": (["1,234.5", "2"], [2, 1234.5], "with marks between thousands"),
    "two thousands": (["1,234,567", "1"], [1, 1234567], "with marks between thousands"),
    "no leading zero": (["0,123", "1,234"], [0.123, 1.234], "with a decimal comma"),
    "blanks between": (["1 234,5", "1\u202f234"], [1234, 1234.5], "with a decimal comma"),
    "Swiss": (["1'234.5", "2’000"], [1234.5, 2000], "with marks between thousands"),
    "percent": (["12.3%", "7 %", "0.1%"], [0.001, 0.07, 0.123], "as percentages: '12.3%'"),
    "percent, comma": (["12,3 %", "7%"], [0.07, 0.123], "as percentages with a decimal comma"),
    "signs": (["-0,5", "+1,5e-1"], [-0.5, 0.15], "with a decimal comma"),
    "plain": (["0.75", "1e-3", "2"], [0.001, 0.75, 2.0], None),
}


@pytest.mark.parametrize(("words", "numbers", "said"), READ.values(), ids=READ)
@pytest.mark.parametrize("sep", [";", ",", "\t"])
def test_what_has_one_meaning_is_read_and_said_once(tmp_path, words, numbers, said, sep):
    found, notes = read(make(tmp_path, words, sep=sep))
    assert found.data.scores.tolist() == numbers
    if said is None:
        assert notes == []
        assert "numbers_written" not in found.facts
    else:
        assert len(notes) == 1
        assert notes[0].startswith("scores (column 's') are written ")
        assert said in notes[0]
        assert found.facts["numbers_written"][0].startswith("'s' ")


@given(
    st.lists(st.decimals(-(10**9), 10**9, places=4), min_size=1, max_size=20),
    st.sampled_from([".", ","]),
    st.booleans(),
)
def test_the_nearest_double_is_read(tmp_path_factory, values, mark, percent):
    """As Python reads the exact decimal, also of percentages, whatever marks are in it."""
    words = [f"{value:,}" for value in values]
    if mark == ",":
        words = [word.translate(str.maketrans(",.", ".,")) for word in words]
    words = [word + "%" * percent for word in words]
    path = make(tmp_path_factory.mktemp("d"), words)
    found, _ = read(path, decimal=mark)
    exact = {float(value / 100 if percent else value) + 0.0 for value in values}
    assert found.data.scores.tolist() == sorted(exact)
    spelling = NumberSpelling(mark, percent)
    assert [spelling.read(word) for word in words] == [
        float(value / 100 if percent else value) for value in values
    ]


def test_one_spelling_is_for_all_rows_of_all_files(tmp_path):
    first = make(tmp_path, ["0.5", "0.25"], name="a.csv")
    second = make(tmp_path, ["0,5", "0,25"], name="b.csv")
    with (
        pytest.raises(InputError, match=r"2 of 4 .*'0,5' in data row 1 of b.csv.* alike"),
        open_engine() as engine,
    ):
        read_rows(engine.rows([first, second], Names("s", "y")))


def test_a_wrong_word_among_decimal_commas_is_the_one_that_is_named(tmp_path):
    path = make(tmp_path, ["0,5", "0,75", "abc", "0,1"])
    with pytest.raises(InputError, match=r"must be numbers: 1 of 4 .*'abc' in data row 3"):
        read(path)


@pytest.mark.parametrize("words", [["1,234", "5"], ["1,234%", "2,500%"], ["1.234,", "1,234"]])
def test_what_has_two_meanings_is_refused_until_said(tmp_path, words):
    if words[0].endswith(","):  # a comma at the end is a decimal one
        assert read(make(tmp_path, words))[0].data.scores.tolist() == [1.234, 1234.0]
        return
    path = make(tmp_path, words)
    with pytest.raises(InputError, match=r"can be read in two ways: '1,234.*--decimal ,"):
        read(path)
    both = [read(path, decimal=mark)[0].data.scores.max() for mark in ".,"]
    assert both[0] == pytest.approx(both[1] * 1000) or both[1] == 5


def test_a_mark_that_was_said_is_the_only_one(tmp_path):
    path = make(tmp_path, ["1.234", "5.000"])
    assert read(path)[0].data.scores.tolist() == [1.234, 5.0]
    assert read(path, decimal=",")[0].data.scores.tolist() == [1234.0, 5000.0]
    with pytest.raises(InputError, match=r"'0.5' in data row 1 .* alike"):
        read(make(tmp_path, ["0.5", "1,5"]), decimal=",")
    with pytest.raises(ParameterError, match="decimal must be"):
        ReadOptions(decimal=";")


def test_weights_and_probabilities_are_spelled_as_well(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("s;y;w\n10,5%;0;1,5\n20%;1;2,5\n")
    found, notes = read(path, weight="w", role="probability")
    assert found.data.scores.tolist() == [0.105, 0.2]
    assert found.data.total == 4.0
    assert [note.split(" (")[0] for note in notes] == ["probabilities", "weights"]


def test_strings_of_other_kinds_of_files(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"s": "0,5", "y": 0}\n{"s": "0,75", "y": 1}\n')
    assert read(path)[0].data.scores.tolist() == [0.5, 0.75]


# --- rows without a value -----------------------------------------------------------------------

EMPTY = ["", "?", "NA", "n/a", "null", "-", "#N/A", "NaN"]


@pytest.mark.parametrize("empty", EMPTY)
def test_rows_without_a_score_or_label_are_counted_or_dropped(tmp_path, empty):
    path = tmp_path / "s.csv"
    path.write_text(f"s,y\n0.5,0\n{empty},1\n0.75,1\n0.25,{empty}\n")
    with pytest.raises(InputError, match=r"complete: 1 of 4 .*data row 2 .*--missing drop"):
        read(path)
    found, notes = read(path, missing="drop")
    assert found.data.scores.tolist() == [0.5, 0.75]
    assert (found.facts["rows"], found.facts["rows_dropped"]) == (2, 2)
    assert notes == ["2 of 4 rows were dropped: no score or no label there"]


@pytest.mark.parametrize("empty", EMPTY[1:-1])
def test_words_for_no_label_beside_two_other_words(tmp_path, empty):
    path = make(tmp_path, ["0.1", "0.2", "0.3"], labels=("no", "yes", empty))
    with pytest.raises(InputError, match=r"'y' must be complete: 1 of 3 .*data row 3"):
        read(path)
    assert read(path, missing="drop")[0].classes == ("no", "yes")


def test_words_that_may_be_labels_are_labels(tmp_path):
    assert read(make(tmp_path, ["1", "2"], labels=("+", "-")))[0].classes == ("+", "-")
    found, _ = read(make(tmp_path, ["1", "2", "3"], labels=("+", "-", "?")), missing="drop")
    assert found.classes == ("+", "-")
    with pytest.raises(InputError, match="at least 3 came: 'mild', 'none', 'severe'"):
        read(make(tmp_path, ["1", "2", "3"], labels=("mild", "none", "severe")), missing="drop")


def test_dropping_forgives_nothing_else(tmp_path):
    path = make(tmp_path, ["0.5", "", "abc", "inf"])
    with pytest.raises(InputError, match=r"must be numbers: 1 of 4 .*'abc' in data row 3"):
        read(path, missing="drop")
    with pytest.raises(InputError, match="none is left"):
        read(make(tmp_path, ["", "NA"]), missing="drop")
    with pytest.raises(ParameterError, match="missing must be 'error' or 'drop'"):
        ReadOptions(missing="skip")


def test_missing_values_of_parquet_and_json(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = {"s": [0.5, None, float("nan"), 0.25], "y": [0, 1, 1, None]}
    pq.write_table(pa.table(table), tmp_path / "s.parquet")
    (tmp_path / "s.jsonl").write_text('{"s":0.5,"y":0}\n{"y":1}\n{"s":null,"y":1}\n{"s":1}\n')
    for name in ("s.parquet", "s.jsonl"):
        found, _ = read(tmp_path / name, missing="drop")
        assert found.data.scores.tolist() == [0.5]
        assert found.facts["rows_dropped"] == 3


# --- applying -----------------------------------------------------------------------------------


def test_applying_reads_the_same_and_touches_nothing_else(tmp_path):
    text = 'id;s;note\r\n007;0,75;"a;b"\r\n008;0,25;1,50\r\n009;?; x \r\n'
    path = tmp_path / "in.csv"
    path.write_text(text, newline="")
    with open_engine() as engine:
        options = {"score": "s", "on_missing": "null", "session": engine.session}
        assert apply_file(STEP, [path], tmp_path / "out.csv", **options) == 3
        assert len(options["session"].notes) == 1
    assert (tmp_path / "out.csv").read_bytes() == (
        b'id;s;note;probability\r\n007;0,75;"a;b";0,75\r\n008;0,25;1,50;0,25\r\n009;?; x ;\r\n'
    )


def test_applying_refuses_what_has_two_meanings(tmp_path):
    path, fitted = make(tmp_path, ["1,234", "5"]), cal.Platt().fit([1, 2, 3, 4], [0, 1, 0, 1])
    with pytest.raises(InputError, match="two ways"):
        apply_file(fitted.to_fitted(), [path], tmp_path / "o.csv", score="s", on_range="allow")
    with Session(reading=ReadOptions(decimal=",")) as session:
        apply_file(fitted.to_fitted(), [path], tmp_path / "o.csv", score="s", session=session)
    rows = [line.split(";") for line in (tmp_path / "o.csv").read_text().splitlines()]
    assert float(rows[1][2].replace(",", ".")) == fitted.calibrate([1.234])[0]
    assert not list(tmp_path.glob(".o.csv*"))


def test_segments_are_counted_once_where_rows_are_read_again(tmp_path):
    from calibrant.data.segments import NewSegments

    segmented = cal.SegmentedCalibrator().fit(
        [0.1, 0.4, 0.6, 0.9] * 5, [0, 1, 0, 1] * 5, segments=["a", "b"] * 10
    )
    path, new = tmp_path / "in.csv", NewSegments()
    path.write_text("s;g\n0,5;a\n0,25;c\n")
    options = {"score": "s", "segment": "g", "new_segments": new}
    apply_file(segmented.to_fitted(), [path], tmp_path / "o.csv", **options)
    assert (new.rows, new.new) == (2, 1)


# --- sheets -------------------------------------------------------------------------------------


def test_a_sheet_is_read_like_any_file(tmp_path):
    rows = [
        ["id", "s", "y", None],
        ["007", 0.25, "no", None],
        [None, None, None, None],
        ["008", 0.75, "yes", None],
        [9.0, "0.5", "no", None],
    ]
    path = write_xlsx(tmp_path / "s.xlsx", {"data": rows})
    found, notes = read(path)
    assert found.data.scores.tolist() == [0.25, 0.5, 0.75]
    assert (found.classes, notes) == (("no", "yes"), [])
    assert found.facts["files"] == ["s.xlsx"]
    apply_file(STEP, [path], tmp_path / "o.csv", score="s")
    assert (tmp_path / "o.csv").read_text() == (
        "id,s,y,probability\n007,0.25,no,0.25\n008,0.75,yes,0.75\n9,0.5,no,0.75\n"
    )


def test_the_sheet_with_the_columns_is_taken_and_said(tmp_path):
    sheets = {
        "about": [["made by"], ["me"]],
        "empty": [],
        "scores": [["s", "y"], [0.5, True], [0.25, False]],
    }
    found, notes = read(write_xlsx(tmp_path / "s.xlsx", sheets))
    assert found.classes == (False, True)
    assert notes == ["s.xlsx: the sheet 'scores' was read, of 2"]
    with open_engine() as engine:  # without names, that with most rows
        assert engine.first_rows([tmp_path / "s.xlsx"], 9) == {
            "s": ["0.5", "0.25"],
            "y": ["true", "false"],
        }


def test_sheets_that_cannot_be(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"s.xlsx is empty"):
        read(write_xlsx(tmp_path / "s.xlsx", {"a": []}))
    path = write_xlsx(tmp_path / "s.xlsx", {"a": [["s", "y"], [0.5, 1], ["abc", 0]]})
    with pytest.raises(InputError, match=r"'abc' in data row 2 of s.xlsx"):
        read(path)
    with pytest.raises(InputError, match=r"s.xlsx has no column 'y'.* Its columns are 's'"):
        read(write_xlsx(tmp_path / "s.xlsx", {"a": [["s"], [0.5]]}))
    (tmp_path / "b.xlsx").write_bytes(b"PK\x03\x04 no")
    with pytest.raises(InputError, match=r"b.xlsx cannot be read as an Excel"):
        read(tmp_path / "b.xlsx")
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    with pytest.raises(MissingExtraError, match=r"calibrant\[cli\]"):
        read(path)


def test_decimals_are_exact():
    """Dividing by 100 would round twice."""
    assert NumberSpelling(".", True).read("12.3%") == float(Decimal("0.123")) != 12.3 / 100
