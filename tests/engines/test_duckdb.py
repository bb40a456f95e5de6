"""Files through DuckDB: the same table as rows in memory, the same probabilities as the map."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import threading
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrant.data.score_table import ScoreTable
from calibrant.engines import open_engine as rows_of_files
from calibrant.engines.duckdb import Session, identifier, literal
from calibrant.engines.files import find_files
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.fitted import Fitted
from calibrant.maps import Logistic, Piecewise, Softmax
from calibrant.outputs import whole_file
from file_jobs import apply_file, read_table

STEP = Fitted(Piecewise.step([0.5], [0.25, 0.75]), (0, 1), 1)
CURVE = Fitted(Logistic(0.1, (("z", 0.7),)), ("ham", "spam"), "spam")

few = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def session():
    with Session(threads=2) as open_session:
        yield open_session


def make(folder: Path, text: str | bytes, name: str = "s.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read_csv(path: Path, delimiter: str = ",") -> list[list[str]]:
    with path.open(newline="") as stream:
        return list(csv.reader(stream, delimiter=delimiter))


# --- the table ----------------------------------------------------------------------------------

finite = st.floats(allow_nan=False, allow_infinity=False)
rows = st.lists(
    st.tuples(finite | st.sampled_from([0.0, -0.0, 0.5]), st.booleans(), st.integers(0, 5)),
    min_size=1,
    max_size=40,
).filter(lambda drawn: any(weight for _, _, weight in drawn))


def columns(drawn):
    scores, positive, weight = zip(*drawn, strict=True)
    return list(scores), [int(y) for y in positive], list(weight)


@few
@given(rows)
@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_table_equals_that_of_the_rows(session, tmp_path, kind, drawn):
    s, y, w = columns(drawn)
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        lines = [f"{a!r},{b},{c}" for a, b, c in zip(s, y, w, strict=True)]
        path.write_text("\n".join(["s,y,w", *lines]))
    elif kind == "jsonl":
        lines = [json.dumps({"s": a, "y": b, "w": c}) for a, b, c in zip(s, y, w, strict=True)]
        path.write_text("\n".join(lines))
    else:
        pq.write_table(pa.table({"s": s, "y": y, "w": w}), path)
    plain = read_table([path], score="s", label="y", session=session)
    weighted = read_table([path], score="s", label="y", weight="w", session=session)
    assert plain.data == ScoreTable.from_arrays(s, y)
    assert weighted.data == ScoreTable.from_arrays(s, y, w)
    assert plain.facts["rows"] == weighted.facts["rows"] == len(s)
    assert plain.classes == (0, 1)


def test_real_weights_agree_to_rounding(session, tmp_path):
    rng = np.random.default_rng(5)
    s, y, w = rng.integers(0, 50, 5000) / 50, rng.integers(0, 2, 5000), rng.random(5000)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"s": s, "y": y, "w": w}), path)
    ours = read_table([path], score="s", label="y", weight="w", session=session).data
    rows_table = ScoreTable.from_arrays(s, y, w)
    for name in ("scores", "negative", "positive", "negative_sq", "positive_sq"):
        np.testing.assert_allclose(getattr(ours, name), getattr(rows_table, name), rtol=1e-12)


MESSY = {
    "semicolons": "s;y\n0.25;1\n0.5;0\n",
    "tabs": "s\ty\n0.25\t1\n0.5\t0\n",
    "bars": "s|y\n0.25|1\n0.5|0\n",
    "BOM": "\ufeffs,y\n0.25,1\n0.5,0\n",
    "CRLF": "s,y\r\n0.25,1\r\n0.5,0\r\n",
    "old Macintosh": "s,y\r0.25,1\r0.5,0\r",
    "no last newline": "s,y\n0.25,1\n0.5,0",
    "blank lines": "\n\ns,y\n\n0.25,1\n\n\n0.5,0\n\n",
    "quotes": '"s","y"\n"0.25","1"\n"0.5","0"\n',
    "spaces in the header": " s , y \n0.25,1\n0.5,0\n",
    "spaces in fields": "s,y\n 0.25 , 1\n0.5 ,0 \n",
    "other columns": 'name,s,"a, b",y\n"Smith, ""J""",0.25,x,1\n"two\nlines",0.5,,0\n',
    "duplicate other columns": "a,s,a,y\n1,0.25,2,1\n1,0.5,2,0\n",
    "case apart": "S,s,y\n9,0.25,1\n9,0.5,0\n",
    "spreadsheet's first line": "sep=;\ns;y\n0.25;1\n0.5;0\n",
    "scientific": "s,y\n2.5e-1,1\n5E-1,0\n",
    "separator in another column's name": '"x;y;z",s,y\n1,0.25,1\n1,0.5,0\n',
}


@pytest.mark.parametrize("text", MESSY.values(), ids=MESSY)
def test_messy_csv(session, tmp_path, text):
    found = read_table([make(tmp_path, text)], score="s", label="y", session=session)
    assert found.data == ScoreTable.from_arrays([0.25, 0.5], [1, 0])


@pytest.mark.parametrize("name", ["s.csv.gz", "s.CSV", "s.tsv", "s.txt", "s.jsonl.gz", "s.json"])
def test_kinds_by_ending(session, tmp_path, name):
    lines = [{"s": 0.25, "y": 1}, {"s": 0.5, "y": 0}]
    text = "s\ty\n0.25\t1\n0.5\t0\n"
    if "jsonl" in name:
        text = "\n".join(map(json.dumps, lines))
    elif "json" in name:
        text = json.dumps(lines)
    content = gzip.compress(text.encode()) if name.endswith("gz") else text.encode()
    found = read_table([make(tmp_path, content, name)], score="s", label="y", session=session)
    assert found.data == ScoreTable.from_arrays([0.25, 0.5], [1, 0])


LABELS = {
    "whole numbers": (["1", "0"], (0, 1), 1),
    "minus one": (["-1", "1"], (-1, 1), 1),
    "one and two": (["2", "1"], (1, 2), 2),
    "huge": (["99999999999999999999", "5"], (5, 99999999999999999999), 99999999999999999999),
    "numbers": (["1.0", "0.0"], (0.0, 1.0), 1.0),
    "several spellings": (["1", "1.0", "0", "+1"], (0.0, 1.0), 1.0),
    "booleans": (["true", "FALSE", "True"], (False, True), True),
    "words": (["yes", "no"], ("no", "yes"), "yes"),
    "names of digits": (["007", "1"], ("007", "1"), "1"),
    "a country": (["NA", "EU"], ("EU", "NA"), "NA"),
    "not ASCII": (["да", "нет"], ("да", "нет"), "нет"),
    "quotes": (["it's", 'a "b"'], ('a "b"', "it's"), "it's"),
}


@pytest.mark.parametrize(("words", "classes", "positive"), LABELS.values(), ids=LABELS)
def test_labels_of_text_keep_their_type(session, tmp_path, words, classes, positive):
    text = io.StringIO()
    csv.writer(text).writerows([("s", "y"), *((i, word) for i, word in enumerate(words))])
    found = read_table([make(tmp_path, text.getvalue())], score="s", label="y", session=session)
    assert found.classes == classes
    assert [type(label) for label in found.classes] == [type(label) for label in classes]
    assert found.pos_label == positive
    other = next(label for label in classes if label != positive)
    turned = read_table(
        [make(tmp_path, text.getvalue())],
        score="s",
        label="y",
        pos_label=str(other),
        session=session,
    )
    assert turned.pos_label == other
    assert turned.data.positive.tolist() == found.data.negative.tolist()


@pytest.mark.parametrize(
    ("column", "classes"),
    [
        (pa.array([1, 0]), (0, 1)),
        (pa.array([1.0, 0.0]), (0.0, 1.0)),
        (pa.array([True, False]), (False, True)),
        (pa.array(["1", "0"]), ("0", "1")),
        (pa.array(["b", "a"]).dictionary_encode(), ("a", "b")),
        (pa.array([1, 0], pa.uint8()), (0, 1)),
    ],
)
def test_labels_of_parquet_keep_their_type(session, tmp_path, column, classes):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"s": [0.5, 0.25], "y": column}), path)
    found = read_table([path], score="s", label="y", session=session)
    assert found.classes == classes
    assert [type(label) for label in found.classes] == [type(label) for label in classes]
    assert found.data.positive.tolist() == [0.0, 1.0]


def test_json_labels_of_two_types_are_not_mixed_up(session, tmp_path):
    path = make(tmp_path, '{"s": 1, "y": "1"}\n{"s": 2, "y": 1}\n', "t.jsonl")
    with pytest.raises(InputError, match="labels of one type"):
        read_table([path], score="s", label="y", session=session)


def test_one_known_label_has_its_partner(session, tmp_path):
    found = read_table([make(tmp_path, "s,y\n1,1\n2,1\n")], score="s", label="y", session=session)
    assert found.classes == (0, 1)
    assert found.data.total_positive == 2


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_labels_that_the_first_rows_do_not_show(session, tmp_path, monkeypatch, kind):
    monkeypatch.setattr(rows_of_files, "HEAD", 2)
    s, y = [0.1, 0.2, 0.3, 0.4], ["no", "no", "yes", "yes"]
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        path.write_text("s,y\n" + "".join(f"{a},{b}\n" for a, b in zip(s, y, strict=True)))
    else:
        pq.write_table(pa.table({"s": s, "y": y}), path)
    found = read_table([path], score="s", label="y", session=session)
    assert found.data == ScoreTable.from_arrays(s, y)


def test_a_spelling_that_the_first_rows_do_not_show(session, tmp_path, monkeypatch):
    monkeypatch.setattr(rows_of_files, "HEAD", 2)
    found = read_table(
        [make(tmp_path, "s,y\n1,0\n2,1\n3,1.0\n")], score="s", label="y", session=session
    )
    assert found.data.positive.tolist() == [0, 1, 1]


def test_json_labels_must_be_plain(session, tmp_path):
    path = make(tmp_path, '{"s": 1, "y": [1]}\n{"s": 2, "y": {"a": 1}}\n', "t.jsonl")
    with pytest.raises(InputError, match="label column 'y' must hold plain values"):
        read_table([path], score="s", label="y", session=session)


def test_the_positive_label_may_be_spelled_otherwise_or_be_a_partner(session, tmp_path):
    path = make(tmp_path, "s,y\n1,1\n2,1\n")
    for asked in ("0.0", "0", 0):
        found = read_table([path], score="s", label="y", pos_label=asked, session=session)
        assert found.pos_label == 0
        assert found.data.total_negative == 2
    with pytest.raises(InputError, match=r"must be one of \[0, 1\] .* but 'true' came"):
        read_table([path], score="s", label="y", pos_label="true", session=session)


def test_several_files_and_globs_in_any_order_of_columns(session, tmp_path):
    make(tmp_path, "s,y\n0.1,0\n", "day-1.csv")
    make(tmp_path, "y;note;s\n1;x;0.2\n", "day-2.csv")
    found = read_table([tmp_path / "day-*.csv"], score="s", label="y", session=session)
    assert found.data == ScoreTable.from_arrays([0.1, 0.2], [0, 1])
    assert found.facts["files"] == ["day-1.csv", "day-2.csv"]


@pytest.mark.parametrize(
    "name",
    ["a b.csv", "it's.csv", 'q"q.csv', "semi;colon.csv", "[1]*?.csv", "naïve—文.csv", "--x.csv"],
)
def test_names_that_need_care(session, tmp_path, name):
    make(tmp_path, "s,y\n9,9\n9,8\n", "1x.csv")  # what a careless [1]*? would match
    column = name.removesuffix(".csv").replace('"', '""')
    path = make(tmp_path, f'"{column}",y\n0.25,1\n0.5,0\n', name)
    found = read_table([path], score=name.removesuffix(".csv"), label="y", session=session)
    assert found.data == ScoreTable.from_arrays([0.25, 0.5], [1, 0])
    out = tmp_path / f"out {name}"
    apply_file(STEP, [path], out, score=name.removesuffix(".csv"), into="p", session=session)
    assert read_csv(out)[1:] == [["0.25", "1", "0.25"], ["0.5", "0", "0.75"]]
    assert read_csv(out)[0] == [name.removesuffix(".csv"), "y", "p"]


def test_sql_in_names_is_only_a_name(session, tmp_path):
    name = 's"); DROP TABLE x; --'
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({name: [0.25, 0.5], "y'": ["a'); --", "b"]}), path)
    found = read_table([path], score=name, label="y'", session=session)
    assert found.classes == ("a'); --", "b")
    assert literal("'") == "''''"
    assert identifier('"') == '""""'


# --- refusals -----------------------------------------------------------------------------------

REFUSED = {
    "text": ("s,y\n1,0\nabc,1\n", r"'s' must be numbers: 1 of 2 .*'abc' in data row 2 of s.csv"),
    "two decimal marks": (
        "s;y\n0.5;0\n0,7;1\n",
        r"1 of 2 .*'0,7' in data row 2 .*all decimals alike",
    ),
    "some percent": ("s,y\n0.5,0\n1%,1\n", r"1 of 2 .*'1%' in data row 2 .*0.5 for 50%"),
    "one of two readings": ('s,y\n"1,234",0\n2,1\n', r"'1,234' is 1234.0 with .* --decimal"),
    "missing": ("s,y\n1,0\n,1\nNA,1\n", r"'s' must be complete: 2 of 3 .*\(first: data row 2"),
    "NaN": ("s,y\n1,0\nnan,1\n", r"'s' must be complete: 1 of 2"),
    "infinite": ("s,y\n1,0\n1e999,1\n", r"'s' must be finite: 1 of 2"),
    "label missing": ("s,y\n1,0\n2,1\n3,\n", r"label column 'y' must be complete: 1 of 3"),
    "label NA": ("s,y\n1,0\n2,1\n3,NA\n", r"must be complete: 1 of 3 .*'NA' in data row 3"),
    "all labels missing": ("s,y\n1,\n2,\n", r"must be complete: 2 of 2"),
    "three labels": ("s,y\n1,a\n2,b\n3,c\n", r"two classes, but at least 3 came: 'a', 'b', 'c'"),
    "one label": ("s,y\n1,a\n2,a\n", r"only one class came: 'a'"),
    "soft labels": ("s,y\n1,0.5\n2,1\n", r"fractions \(soft labels\) came, such as 0.5"),
    "no rows": ("s,y\n", r"must hold rows of data"),
    "empty": ("", r"s.csv is empty"),
    "only blanks": ("\n\n\n", r"s.csv is empty"),
    "no header": ("0.1,0\n0.2,1\n", r"has no column 's' .*needs a header line"),
    "one column": ("s y\n0.1 0\n", r"Only one column was found"),
    "unknown column": ("scores,y\n1,0\n", r"columns are 'scores', 'y'. Did you mean 'scores'\?"),
    "two of that name": ("s,s,y\n1,1,0\n", r"2 columns named 's'"),
    "too many fields": ("s,y\n1,0\n2,1,9\n", r"line 3 has 3 fields where the header has 2"),
    "too few fields": ("s,y\n1,0\n2\n", r"line 3 has 1 fields where the header has 2"),
    "long field": (
        's,y,n\n1,0,5" pipe\n1,0,' + "x" * 131_073 + "\n",
        r"line 3 has a field of more than 131,072 characters: '1,0,x.*quote",
    ),
    "open quote": ('s,y\n1,0\n"2,1\n', r"line 3 has a quote that does not end"),
    "mixed line endings": ("s,y\n1,0\r\n2,1\r\n", r"mixes line endings"),
    "neither UTF-8 nor cp1252": (b"s,y\n1,\x81\n2,b\n", r"must be UTF-8.*--encoding cp1250"),
    "far below": (b"s,y\n" + b"1,a\n" * 9000 + b"2,\x81\n", r"must be UTF-8"),
    "UTF-8 with a wrong byte": (b"s,y\n1,\xc3\xa4\n2,\xc3\xb6\n3,\xe9\n", r"must be UTF-8"),
    "UTF-8 by its mark": (b"\xef\xbb\xbfs,y\n1,\xe9\n2,b\n", r"must be UTF-8"),
    "UTF-16 without a mark": ("s,y\n1,0\n".encode("utf-16-le"), r"say --encoding utf-16-le"),
    "half of UTF-16": ("s,y\n1,0\n".encode("utf-16")[:-1], r"must be UTF-16 text"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_say_what_and_where(session, tmp_path, text, message):
    with pytest.raises(InputError, match=message) as raised:
        read_table([make(tmp_path, text)], score="s", label="y", session=session)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("size", "line"), [(3, "line 3"), (50, "a line")])
def test_a_line_that_is_too_long_is_refused_in_our_words(session, tmp_path, size, line):
    path = make(tmp_path, "s,y,n\n1,0,a\n2,1," + "x" * size * 10**6 + "\n3,0,b\n")
    with pytest.raises(InputError, match=rf"{line} is longer than 2,000,000 bytes") as raised:
        read_table([path], score="s", label="y", session=session)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("s.csv", 's,y,n\n1,0,a\n2,1,"{}"\n3,0,b\n', "a field in quotes is longer than 2,000,000"),
        ("s.csv", "s,y,{}\n1,0,a\n2,1,b\n", "a header with a name of more than 131,072 characters"),
        ("s.jsonl", '{{"s": 1, "y": 0, "n": "{}"}}\n', "a row is longer than 16,777,216 bytes"),
    ],
)
def test_fields_of_megabytes_are_refused_in_our_words(session, tmp_path, name, text, message):
    path = make(tmp_path, text.format("x" * 40_000_000), name)
    with pytest.raises(InputError, match=message) as raised:
        read_table([path], score="s", label="y", session=session)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (["1", "-2"], r"weight column 'w' must be at least 0: 1 of 2"),
        (["1", ""], r"weight column 'w' must be complete"),
        (["1", "nan"], r"weight column 'w' must be complete"),
        (["1", "inf"], r"weight column 'w' must be finite"),
        (["1", "x"], r"weight column 'w' must be numbers"),
        (["0", "0"], r"positive for at least one row"),
        (["1", "1e200"], r"at most 1e\+100"),
    ],
)
def test_refused_weights(session, tmp_path, weights, message):
    path = make(tmp_path, f"s,y,w\n1,0,{weights[0]}\n2,1,{weights[1]}\n")
    with pytest.raises(InputError, match=message):
        read_table([path], score="s", label="y", weight="w", session=session)


def test_thousands_of_labels_are_an_error_and_not_a_wait(session, tmp_path):
    text = "s,y\n" + "".join(f"{i},id{i}\n" for i in range(30_000))
    with pytest.raises(InputError, match=r"two classes, but at least 1000 came"):
        read_table([make(tmp_path, text)], score="s", label="y", session=session)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_first_wrong_row_is_found_by_several_threads(tmp_path, kind):
    scores = ["0.5"] * 300_000
    scores[123_456] = scores[250_000] = "abc"
    path = tmp_path / f"s.{kind}"
    if kind == "csv":
        path.write_text("s,y\n" + "".join(f"{s},{i % 2}\n" for i, s in enumerate(scores)))
    else:
        table = pa.table({"s": scores, "y": np.arange(len(scores)) % 2})
        pq.write_table(table, path, row_group_size=10_000)
    with Session(threads=4) as session:
        for job in (
            lambda: read_table([path], score="s", label="y", session=session),
            # with threads for writing, DuckDB waited for ever in two of ten runs
            *[lambda: apply_file(STEP, [path], tmp_path / "o.csv", score="s", session=session)] * 3,
        ):
            with pytest.raises(InputError, match=r"2 of 300,000 rows .*data row 123,457 of"):
                job()


def test_the_file_with_the_wrong_row_is_named(session, tmp_path):
    first = make(tmp_path, "s,y\n1,0\n2,1\n", "a.csv")
    second = make(tmp_path, "s,y\n1,0\n?,1\n?,1\n", "b.csv")
    with pytest.raises(InputError, match=r"2 of 5 rows .*'\?' in data row 2 of b.csv"):
        read_table([first, second], score="s", label="y", session=session)


def test_probabilities_outside_the_unit_interval(session, tmp_path):
    path = make(tmp_path, "s,y\n0.5,0\n50,1\n")
    with pytest.raises(
        InputError, match=r"probability column 's' must be probabilities in \[0, 1\]"
    ):
        read_table([path], score="s", label="y", probabilities=True, session=session)


@pytest.mark.parametrize(
    ("column", "role", "message"),
    [
        (pa.array([[1.0], [2.0]]), "s", r"must be numbers, but its type is"),
        (pa.array([1, 2], pa.date32()), "s", r"must be numbers, but its type is DATE"),
        (pa.array([{"a": 1}, {"a": 2}]), "y", r"must hold plain labels, but its type is STRUCT"),
        (pa.array([math.nan, 1.0]), "y", r"label column 'y' must be complete: 1 of 2"),
        (pa.array([None, 1]), "y", r"label column 'y' must be complete: 1 of 2"),
        (pa.array([None, 0.5]), "s", r"score column 's' must be complete: 1 of 2"),
    ],
)
def test_refused_columns_of_parquet(session, tmp_path, column, role, message):
    columns = {"s": pa.array([0.25, 0.5]), "y": pa.array([0, 1]), role: column}
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(InputError, match=message):
        read_table([path], score="s", label="y", session=session)


@pytest.mark.parametrize(
    "content", [b"PAR1 not really", b"x" * 1000, b"PAR1" + b"\0" * 500 + b"PAR1"]
)
def test_corrupt_parquet(session, tmp_path, content):
    with pytest.raises(InputError) as raised:
        read_table([make(tmp_path, content, "t.parquet")], score="s", label="y", session=session)
    assert "\n" not in str(raised.value)
    assert "t.parquet" in str(raised.value)


def test_truncated_gzip_and_broken_json(session, tmp_path):
    packed = gzip.compress(b"s,y\n" + b"0.5,1\n0.25,0\n" * 50_000)[:200]
    for name, content in (("t.csv.gz", packed), ("t.jsonl", b'{"s": 1, "y": 0}\n{"s": \n')):
        with pytest.raises(InputError):
            read_table([make(tmp_path, content, name)], score="s", label="y", session=session)


def test_files_that_are_not_there(session, tmp_path):
    make(tmp_path, "s,y\n1,0\n", "scores.csv")
    with pytest.raises(
        InputError, match=r"there is no file .*score.csv. Did you mean .*scores.csv"
    ):
        find_files([tmp_path / "score.csv"])
    with pytest.raises(InputError, match="no file matches"):
        find_files([tmp_path / "*.parquet"])
    with pytest.raises(InputError, match="is a folder"):
        find_files([tmp_path])
    with pytest.raises(InputError, match="at least one data file"):
        find_files([])
    with pytest.raises(InputError, match="must end in one of"):
        read_table([make(tmp_path, "s", "t.docx")], score="s", label="y", session=session)
    pq.write_table(pa.table({"s": [1], "y": [1]}), tmp_path / "t.parquet")
    both = [tmp_path / "scores.csv", tmp_path / "t.parquet"]
    with pytest.raises(InputError, match="must be of one kind"):
        read_table(both, score="s", label="y", session=session)


# --- applying -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Enough rows for several row groups and threads."""
    rng = np.random.default_rng(3)
    n = 200_000
    table = pa.table(
        {
            "id": np.arange(n),
            "s": rng.random(n) ** 3,
            "text": pa.array([None, "", "007", 'a "b", c'] * (n // 4)),
        }
    )
    path = tmp_path_factory.mktemp("many") / "many.parquet"
    pq.write_table(table, path, row_group_size=10_000)
    return path, table


def test_parquet_bit_for_bit_and_in_order(many, tmp_path):
    path, table = many
    with Session(threads=4) as session:
        assert (
            apply_file(CURVE, [path], tmp_path / "o.parquet", score="s", session=session) == 200_000
        )
    out = pq.read_table(tmp_path / "o.parquet")
    assert out.column_names == ["id", "s", "text", "probability"]
    assert out.drop_columns("probability").to_pydict() == table.to_pydict()
    expected = CURVE.calibrate(table["s"].to_numpy())
    assert (out["probability"].to_numpy() == expected).all()


def test_csv_reads_back_as_the_same_numbers_in_order(many, tmp_path):
    path, table = many
    with Session(threads=4) as session:
        apply_file(CURVE, [path], tmp_path / "a.csv", score="s", session=session)
        apply_file(
            CURVE, [tmp_path / "a.csv"], tmp_path / "b.csv", score="s", into="p", session=session
        )
    rows = read_csv(tmp_path / "b.csv")
    assert rows[0] == ["id", "s", "text", "probability", "p"]
    assert [int(row[0]) for row in rows[1:]] == list(range(table.num_rows))
    expected = CURVE.calibrate(table["s"].to_numpy()).tolist()
    assert [float(row[3]) for row in rows[1:]] == expected
    assert [float(row[4]) for row in rows[1:]] == expected


@pytest.mark.parametrize("header", ["id,s", "id,s,s2,S2"])
@pytest.mark.full
def test_order_of_several_csv_files_under_several_threads(tmp_path, header):
    more = "," * header.count(",s2") * 2
    files = [tmp_path / f"{k}.csv" for k in range(3)]
    for k, file in enumerate(files):
        rows = (f"{i},0.{i}{more}\n" for i in range(k * 100_000, (k + 1) * 100_000))
        file.write_text(header + "\n" + "".join(rows))
    with Session(threads=4) as session:
        apply_file(STEP, files, tmp_path / "o.csv", score="s", session=session)
    rows = read_csv(tmp_path / "o.csv")
    assert rows[0] == [*header.split(","), "probability"]
    assert [row[0] for row in rows[1:]] == [str(i) for i in range(300_000)]


fields = st.text(
    st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), max_size=8
)


@few
@given(st.lists(st.tuples(fields, fields, st.floats(0, 1)), min_size=1, max_size=10))
def test_other_fields_of_csv_stay_as_they_came(session, tmp_path, drawn):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
        writer.writerow(["one", "s", "two"])
        writer.writerows((a, repr(p), b) for a, b, p in drawn)
    assert apply_file(STEP, [path], out, score="s", session=session) == len(drawn)
    expected = [[a, repr(p), b, str(0.25 if p < 0.5 else 0.75)] for a, b, p in drawn]
    assert read_csv(out) == [["one", "s", "two", "probability"], *expected]


def test_text_is_not_parsed(session, tmp_path):
    path = make(tmp_path, "id,s,n\n007,5e-1,1e3\n008,.25,TRUE\n009,+0.75,2020-01-01\n")
    apply_file(STEP, [path], tmp_path / "o.csv", score="s", session=session)
    assert (tmp_path / "o.csv").read_text() == (
        "id,s,n,probability\n007,5e-1,1e3,0.75\n008,.25,TRUE,0.25\n009,+0.75,2020-01-01,0.75\n"
    )


@pytest.mark.parametrize(
    ("source", "out", "separator"),
    [(";", "o.csv", ";"), (";", "o.tsv", "\t"), ("\t", "o.csv", ","), ("|", "o.txt", "|")],
)
def test_separators(session, tmp_path, source, out, separator):
    path = make(tmp_path, f"s{source}x\n0.5{source}a\n")
    apply_file(STEP, [path], tmp_path / out, score="s", session=session)
    assert read_csv(tmp_path / out, separator) == [["s", "x", "probability"], ["0.5", "a", "0.75"]]


def test_compressed_and_json_outputs(session, tmp_path):
    path = make(tmp_path, "s,x\n0.5,a\n")
    apply_file(STEP, [path], tmp_path / "o.csv.gz", score="s", session=session)
    assert gzip.decompress((tmp_path / "o.csv.gz").read_bytes()) == b"s,x,probability\n0.5,a,0.75\n"
    apply_file(STEP, [path], tmp_path / "o.jsonl", score="s", session=session)
    assert json.loads((tmp_path / "o.jsonl").read_text()) == {
        "s": "0.5",
        "x": "a",
        "probability": 0.75,
    }


def test_names_that_sql_would_change(session, tmp_path):
    path = make(tmp_path, "a,a,A,,s\n1,2,3,4,0.5\n")
    apply_file(STEP, [path], tmp_path / "o.csv", score="s", session=session)
    assert read_csv(tmp_path / "o.csv") == [
        ["a", "a", "A", "", "s", "probability"],
        ["1", "2", "3", "4", "0.5", "0.75"],
    ]
    with pytest.raises(InputError, match=r"different names .*'a', 'a', 'A', ''"):
        apply_file(STEP, [path], tmp_path / "o.parquet", score="s", session=session)


def test_files_with_their_columns_in_another_order(session, tmp_path):
    first = make(tmp_path, "s,x\n0.1,a\n", "1.csv")
    second = make(tmp_path, "x;s\nb;0.9\n", "2.csv")
    assert apply_file(STEP, [first, second], tmp_path / "o.csv", score="s", session=session) == 2
    assert read_csv(tmp_path / "o.csv")[1:] == [["0.1", "a", "0.25"], ["0.9", "b", "0.75"]]
    third = make(tmp_path, "s,z\n0.1,a\n", "3.csv")
    with pytest.raises(InputError, match=r"1.csv and 3.csv differ in 'x', 'z'"):
        apply_file(STEP, [first, third], tmp_path / "o.csv", score="s", session=session)


def test_a_column_of_that_name(session, tmp_path):
    path = make(tmp_path, "probability,s\n0,0.5\n")
    with pytest.raises(InputError, match="already has a column 'probability'"):
        apply_file(STEP, [path], tmp_path / "o.csv", score="s", session=session)
    apply_file(STEP, [path], tmp_path / "o.csv", score="s", overwrite_column=True, session=session)
    assert read_csv(tmp_path / "o.csv") == [["probability", "s"], ["0.75", "0.5"]]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_missing_scores(session, tmp_path, kind):
    path = tmp_path / f"in.{kind}"
    if kind == "csv":
        path.write_text("id,s\n1,0.5\n2,\n3,NA\n4,0.25\n")
    else:
        pq.write_table(pa.table({"id": [1, 2, 3, 4], "s": [0.5, None, math.nan, 0.25]}), path)
    with pytest.raises(InputError, match=r"must be complete: 2 of 4 .*data row 2 of in"):
        apply_file(STEP, [path], tmp_path / "o.parquet", score="s", session=session)
    assert not (tmp_path / "o.parquet").exists()
    apply_file(STEP, [path], tmp_path / "o.parquet", score="s", on_missing="null", session=session)
    found = pq.read_table(tmp_path / "o.parquet")["probability"].to_pylist()
    assert found == [0.75, None, None, 0.25]


def test_all_scores_missing(session, tmp_path):
    path = make(tmp_path, "id,s\n1,\n2,NA\n")
    apply_file(STEP, [path], tmp_path / "o.csv", score="s", on_missing="null", session=session)
    assert [row[2] for row in read_csv(tmp_path / "o.csv")] == ["probability", "", ""]


@pytest.mark.parametrize("on_missing", ["error", "null"])
@pytest.mark.parametrize("wrong", ["abc", "inf", "1,5"])
def test_wrong_scores_are_never_passed_over(session, tmp_path, wrong, on_missing):
    path = make(tmp_path, f'id,s\n1,0.5\n2,"{wrong}"\n')
    with pytest.raises(InputError, match=rf"'{wrong}' in data row 2 of s.csv"):
        apply_file(
            STEP, [path], tmp_path / "o.csv", score="s", on_missing=on_missing, session=session
        )
    assert [file.name for file in tmp_path.iterdir()] == ["s.csv"]


def test_apply_refuses(session, tmp_path):
    path = make(tmp_path, "s,x\n0.5,a\n")
    with pytest.raises(InputError, match="another file than"):
        apply_file(STEP, [path], path, score="s", session=session)
    with pytest.raises(ParameterError, match="on_missing must be 'error' or 'null'"):
        apply_file(STEP, [path], tmp_path / "o.csv", score="s", on_missing="skip", session=session)
    with pytest.raises(InputError, match=r"folder .* does not exist"):
        apply_file(STEP, [path], tmp_path / "no" / "o.csv", score="s", session=session)
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        apply_file(STEP, [path], tmp_path / "d.csv", score="s", session=session)
    with pytest.raises(InputError, match="must end in one of"):
        apply_file(STEP, [path], tmp_path / "o.xlsx", score="s", session=session)
    several = Fitted(Softmax(np.eye(3), np.zeros(3)), (0, 1, 2), None)
    with pytest.raises(InputError, match="reads 3 columns of scores, but 1 came: 's'"):
        apply_file(several, [path], tmp_path / "o.csv", score="s", session=session)
    with pytest.raises(InputError, match="reads one column of scores, but 2 came: 's', 'x'"):
        apply_file(STEP, [path], tmp_path / "o.csv", score=("s", "x"), session=session)


def test_an_empty_table_gives_an_empty_table(session, tmp_path):
    path = make(tmp_path, "s,x\n")
    assert apply_file(STEP, [path], tmp_path / "o.csv", score="s", session=session) == 0
    assert (tmp_path / "o.csv").read_text() == "s,x,probability\n"


# --- the session --------------------------------------------------------------------------------


def copy_without_end(session: Session, out: Path) -> None:
    with whole_file(out) as temporary:
        endless = f"COPY (SELECT * FROM range(1000000000000)) TO {literal(str(temporary))}"
        session.query(f"{endless} (USE_TMP_FILE false)")


def test_interruption_stops_the_query_and_leaves_nothing(tmp_path):
    calls = []

    def impatient(done: float) -> None:
        calls.append(done)
        raise KeyboardInterrupt

    with Session(threads=1, progress=impatient) as session:
        with pytest.raises(KeyboardInterrupt):
            copy_without_end(session, tmp_path / "o.csv")
        assert calls
        assert all(0.0 <= done <= 1.0 for done in calls)
        assert list(tmp_path.iterdir()) == []
        session._progress = None
        assert session.query("SELECT 1") == [(1,)]  # the connection is free again


def test_no_statement_runs_on_the_main_thread(monkeypatch):
    """There DuckDB would make an error of its own of a signal."""
    threads = []

    class Connection:
        def __init__(self, real):
            self.real = real

        def __getattr__(self, name):
            return getattr(self.real, name)

        def execute(self, *statement):
            threads.append(threading.current_thread())
            return self.real.execute(*statement)

    real = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *where: Connection(real(*where)))
    with Session(threads=1, memory_limit="100MB") as session:
        session.query("SELECT 1")
    with Session():
        pass
    assert len(threads) > 10
    assert threading.main_thread() not in threads


def test_session_removes_what_it_spilled():
    with Session() as session:
        (folder,) = session.query("SELECT current_setting('temp_directory')")[0]
        assert Path(folder).is_dir()
    assert not Path(folder).exists()


def test_memory_is_bounded_unless_asked_otherwise():
    query = "SELECT current_setting('memory_limit')"
    with Session(threads=2) as session:
        amount, unit = session.query(query)[0][0].split()
        assert float(amount) * {"MiB": 2**20, "GiB": 2**30}[unit] <= 1.6e9
    with Session(memory_limit="700MiB") as session:
        assert session.query(query) == [("700.0 MiB",)]


def test_settings_are_checked():
    with pytest.raises(ParameterError, match="memory_limit must be a size such as"):
        Session(memory_limit="plenty")
    with pytest.raises(ParameterError, match="threads must be a whole number"):
        Session(threads=0)


def test_too_little_memory_is_said():
    query = "SELECT list(range ORDER BY hash(range)) FROM range(20000000)"
    with (
        Session(memory_limit="20MB", threads=1) as session,
        pytest.raises(InputError, match="needs more memory than is allowed"),
    ):
        session.query(query)


def test_mistakes_of_the_program_stay_loud(session):
    import duckdb

    with pytest.raises(duckdb.Error):
        session.query("SELECT no_such_column")
