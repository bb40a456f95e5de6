"""Files are read as they are: no row is lost, no other column changes, no folder replaces one."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.engines import files as csv_records
from calibrant.engines.duckdb import Session, set_json_key
from calibrant.engines.files import find_files
from calibrant.engines.open_engine import check_rows
from calibrant.errors import InputError
from calibrant.fitting.fitted import Fitted
from calibrant.maps import Piecewise
from file_jobs import apply_file, read_table

STEP = Fitted(Piecewise.step([0.5], [0.25, 0.75]), (0, 1), 1)

few = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def session():
    with Session(threads=2) as open_session:
        yield open_session


def make(folder: Path, content: str | bytes, name: str = "s.csv") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def fields(path: Path, separator: str = ",") -> list[list[str]]:
    with path.open(newline="", encoding="utf-8-sig") as stream:
        return list(csv.reader(stream, delimiter=separator))


# --- CSV: no row is lost ------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("inner", ["\n", "\r\n", "\r"])
def test_line_breaks_in_names_do_not_end_the_lines(session, tmp_path, end, inner):
    name = f"customer{inner}id"
    lines = [f'"{name}",s,y', "1,0.2,0", f'"a{inner}b",0.7,1', ""]
    path, out = make(tmp_path, end.join(lines)), tmp_path / "o.csv"
    assert apply_file(STEP, [path], out, score="s", session=session) == 2
    assert out.read_bytes().endswith(end.encode())
    written = fields(out)
    assert written[0] == [name, "s", "y", "probability"]
    assert [row[0] for row in written[1:]] == ["1", f"a{inner}b"]
    assert read_table([path], score="s", label="y", session=session).facts["rows"] == 2


AMBIGUOUS = {
    "a blank before a quote": ('s,y,n\n0.2,0, "q,r"\n0.7,1,x\n', r"line 2 has a blank between"),
    "a blank before a quoted name": ('s,y, "n"\n0.2,0,1\n0.7,1,x\n', r"line 1 has a blank between"),
    "a carriage return at the start": ("s,y\n\r0.2,0\n0.7,1\n", r"mixes line endings"),
    "a carriage return in a field": ("s,y,n\n0.2,0,a\rb\n0.7,1,c\n", r"mixes line endings"),
    "text after a quote": ('s,y,n\n0.2,0,"a"b\n0.7,1,c\n', r"line 2 has a quote within a field"),
    "a separator too many": ("s,y\n0.2,0\n0.7,1,\n", r"line 3 has 3 fields where the header has 2"),
    "a mark before a quote": ('\ufeff"s,",s,y\n1,0.2,0\n1,0.7,1\n', r"byte order mark"),
    "a break after a mark": ('\ufeff"s\n",s,y\r\n1,0.2,0\r\n', r"byte order mark.*tail -c \+4"),
    "digits in groups": ("s,y\n1_0,0\n0.7,1\n", r"'s' must be numbers: 1 of 2 rows.*'1_0'"),
    "two signs": ("s,y\n+-1,0\n0.7,1\n", r"'s' must be numbers: 1 of 2 rows.*'\+-1'"),
}


@pytest.mark.parametrize(("text", "message"), AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_what_can_be_read_in_two_ways_is_refused(session, tmp_path, text, message):
    path, out = make(tmp_path, text), tmp_path / "o.csv"
    with pytest.raises(InputError, match=message):
        apply_file(STEP, [path], out, score="s", session=session)
    with pytest.raises(InputError, match=message):
        read_table([path], score="s", label="y", session=session)
    assert not out.exists()


CLEAR = {
    "quotes in the midst": 's,y,n\n0.2,0,5" pipe\n0.7,1,a"b"\n',
    "quotes in the midst of other lines": 's,y,n\r\n0.2,0,5" pipe\r\n0.7,1,"a\n""b"""\r\n',
    "blanks before a quoted quote": 's,y,n\n0.2,0,"  ""a"""\n0.7,1,""\n',
    "both": 's,y,n\n0.2,0,"  ""a"""\n0.7,1,5" pipe\n',
    "a mark before quotes": '\ufeff"s","y","n, m"\n"0.2","0",a\n"0.7","1","b"\n',
    "blank lines": "\n\ns,y,n\n\n0.2,0,a\n\n\n0.7,1,b\n\n",
    "empty fields above": ",,\ns,y,n\n0.2,0,a\n0.7,1,b\n",
    "a spreadsheet's first line": "sep=;\r\ns;y;n\r\n0.2;0;a\r\n0.7;1;b\r\n",
    "zero bytes": "s,y,n\n0.2,0,a\0\n0.7,1,\0\n",
}


@pytest.mark.parametrize("block", [1, 3, 2**19])
@pytest.mark.parametrize("text", CLEAR.values(), ids=CLEAR)
def test_what_has_one_meaning_is_read(session, tmp_path, monkeypatch, text, block):
    monkeypatch.setattr(csv_records, "BLOCK", block)
    path, out = make(tmp_path, text), tmp_path / "o.csv"
    assert apply_file(STEP, [path], out, score="s", session=session) == 2
    separator = ";" if ";" in text else ","
    text = text.removeprefix("\ufeff").removeprefix("sep=;\r\n")
    expected = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    expected = [row for row in expected if any(row)]
    written = [row[:-1] for row in fields(out, separator)]
    assert written == expected


def test_labels_are_no_numbers_where_only_python_reads_them_so(session, tmp_path):
    path = make(tmp_path, "s,y\n0.2,1_0\n0.7,٣\n")
    assert read_table([path], score="s", label="y", session=session).classes == ("1_0", "٣")


def test_a_last_line_that_is_too_long_is_named(session, tmp_path):
    path = make(tmp_path, f"s,y,n\n0.2,0,a\n0.7,1,{'x' * 50_000_000}\n")
    with pytest.raises(InputError, match="longer than 2,000,000 bytes"):
        read_table([path], score="s", label="y", session=session)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_rows_that_a_reader_loses_are_an_error(session, tmp_path, monkeypatch, kind):
    path, out = tmp_path / f"s.{kind}", tmp_path / "o.csv"
    pq.write_table(pa.table({"s": [0.2, 0.7], "y": [0, 1]}), tmp_path / "s.parquet")
    make(tmp_path, "s,y\n0.2,0\n0.7,1\n")
    make(tmp_path, '{"s":0.2,"y":0}\n{"s":0.7,"y":1}\n', "s.jsonl")
    honest = Session._own_source

    def look(*given):
        source = honest(*given)
        return replace(source, relation=f"(FROM {source.relation} LIMIT 1)")

    monkeypatch.setattr(Session, "_own_source", look)
    message = r"all 2 rows of s\.\w+ must be read, but 1 were"
    with pytest.raises(InputError, match=message):
        apply_file(STEP, [path], out, score="s", session=session)
    with pytest.raises(InputError, match=message):
        read_table([path], score="s", label="y", session=session)
    with pytest.raises(InputError, match=message):
        cal.score_table(path, score="s", label="y")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.csv", "s.jsonl", "s.parquet"]


def test_counts_are_compared_only_where_all_are_known():
    check_rows(3, [None, 5], "a.csv")
    check_rows(7, [2, 5], "a.csv")
    with pytest.raises(InputError, match=r"all 7 rows of a\.csv and the other files"):
        check_rows(3, [2, 5], "a.csv")


texts = st.text(st.sampled_from("ab ,;\"'\\\t\n\r\x00\u2028é#01"), max_size=6)


def spelled(text: str, quoted: bool, separator: str) -> str:
    if quoted or any(c in text for c in f'{separator}\n\r"') or text.startswith(" "):
        return '"' + text.replace('"', '""') + '"'
    return text


@few
@given(
    st.lists(st.tuples(texts, texts, st.booleans(), st.booleans()), min_size=1, max_size=8),
    texts,
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
)
def test_csv_comes_back_as_it_went(session, tmp_path, drawn, name, separator, end, packed):
    table = [("s", f"n{name}", "m"), *((str(0.5 * q), a, b) for a, b, q, _ in drawn)]
    quoted = [False, *(q for *_, q in drawn)]
    lines = [
        separator.join(spelled(t, q, separator) for t in row)
        for row, q in zip(table, quoted, strict=True)
    ]
    content = (end.join(lines) + end).encode()
    path = make(
        tmp_path, gzip.compress(content) if packed else content, "c.csv.gz" if packed else "c.csv"
    )
    out = tmp_path / "o.csv"
    assert apply_file(STEP, [path], out, score="s", session=session) == len(drawn)
    kept = "," if separator == "\t" else separator
    with out.open(newline="", encoding="utf-8") as stream:
        written = list(csv.reader(stream, delimiter=kept))
    assert [tuple(row[:-1]) for row in written] == table


# --- JSON lines: every byte stays ---------------------------------------------------------------

ODD = [
    '{"score":0.2,"d":"20-01-02","t":"12:00","big":1000000000000000000000000000000}',
    '{"score": 0.7 , "n":"2020-01-01T00:00:00.123456789+02:00", "o":{"a":1.50}}',
    '{"u":"6F9619FF-8B86-D011-B42D-00CF4FC964FF","o":{"b":[1e5,0.10000000000000000001]},"score":1}',
    '{"Score":3,"score":0.5,"e":"\\u00e9é\\/","":null,"a/b~":{"score":0}}',
]


def test_json_lines_keep_their_bytes(session, tmp_path):
    path, out = make(tmp_path, "\n".join([*ODD, ""]), "s.jsonl"), tmp_path / "o.jsonl"
    assert apply_file(STEP, [path], out, score="score", into="p q", session=session) == 4
    answers = (0.25, 0.75, 0.75, 0.75)
    expected = [f'{line[:-1]},"p q":{p}}}' for line, p in zip(ODD, answers, strict=True)]
    assert out.read_text(encoding="utf-8").splitlines() == expected


def test_a_value_of_json_lines_is_replaced_in_its_place(session, tmp_path):
    lines = ['{"p" : [1, {"p":2}] ,"s":0.2, "x":1.50}', '{ "s":0.7,"\\u0070":"}"}', '{"s":1 }']
    path, out = make(tmp_path, "\r\n".join(lines), "s.jsonl"), tmp_path / "o.jsonl"
    with pytest.raises(InputError, match="already has a column 'p'"):
        apply_file(STEP, [path], out, score="s", into="p", session=session)
    apply_file(STEP, [path], out, score="s", into="p", overwrite_column=True, session=session)
    assert out.read_text().splitlines() == [
        '{"p" : 0.25 ,"s":0.2, "x":1.50}',
        '{ "s":0.7,"\\u0070":0.75}',
        '{"s":1 ,"p":0.75}',
    ]


def test_folders_columns_stay_where_a_value_is_replaced(session, tmp_path):
    (tmp_path / "day=3").mkdir()
    path = make(tmp_path / "day=3", '{"p":1,"s":0.7}\n{"s":0.2}\n', "s.jsonl")
    out = tmp_path / "o.jsonl"
    apply_file(STEP, [path], out, score="s", into="p", overwrite_column=True, session=session)
    assert out.read_text() == '{"p":0.75,"s":0.7,"day":3}\n{"s":0.2,"day":3,"p":0.25}\n'


def test_an_array_becomes_lines(session, tmp_path):
    path = make(tmp_path, '[{"s":0.2,\n "x":1.50},\r\n{ },{\n}]', "s.json")
    out = tmp_path / "o.jsonl"
    apply_file(STEP, [path], out, score="s", on_missing="null", session=session)
    assert out.read_text().splitlines() == [
        '{"s":0.2,  "x":1.50,"probability":0.25}',
        '{ "probability":null}',
        '{ "probability":null}',
    ]


def test_json_as_csv_and_parquet(session, tmp_path):
    path = make(tmp_path, "\n".join(ODD), "s.jsonl")
    apply_file(STEP, [path], tmp_path / "o.csv", score="score", session=session)
    header, first, second, *_ = fields(tmp_path / "o.csv")
    assert header[:4] == ["score", "d", "t", "big"]
    assert first[:4] == ["0.2", "20-01-02", "12:00", "1" + "0" * 30]
    assert second[header.index("n")] == "2020-01-01T00:00:00.123456789+02:00"
    path = make(tmp_path, "\n".join(ODD[:3]), "s.jsonl")
    apply_file(STEP, [path], tmp_path / "o.parquet", score="score", session=session)
    table = pq.read_table(tmp_path / "o.parquet")
    assert table["score"].to_pylist() == [0.2, 0.7, 1.0]
    assert table["d"].to_pylist() == ["20-01-02", None, None]
    assert table["u"].to_pylist()[2] == "6F9619FF-8B86-D011-B42D-00CF4FC964FF"
    assert table["big"].to_pylist()[0] == "1" + "0" * 30
    assert json.loads(table["o"].to_pylist()[1]) == {"a": 1.5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"s":0.2,"s":0.7}\n', "every key once in a row, but 1 rows have one twice"),
        ('{"s":0.2}\n[1]\n3\n', "must hold objects .* but 2 rows are something else"),
        ('{"s":"1_0"}\n', "'s' must be numbers: 1 of 1 rows"),
        ("\n \n", "is empty"),
    ],
)
def test_json_that_is_refused(session, tmp_path, text, message):
    path = make(tmp_path, text, "s.jsonl")
    with pytest.raises(InputError, match=message):
        apply_file(STEP, [path], tmp_path / "o.jsonl", score="s", session=session)


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)


@few
@given(
    st.lists(st.dictionaries(words, values, max_size=4), min_size=1, max_size=8),
    st.sampled_from([None, 2]),
    st.booleans(),
    st.sampled_from(["probability", 'a"b', "é", ""]),
)
def test_json_lines_come_back_as_they_went(session, tmp_path, rows, indent, plain, into):
    into = into or "x y"
    drawn = [{k: v for k, v in row.items() if k != into} | {"s": 0.2} for row in rows]
    ends = {} if indent is None else {"separators": (" , ", "\t: ")}
    lines = [json.dumps(row, ensure_ascii=plain, **ends) for row in drawn]
    if any("Infinity" in line for line in lines):
        return
    path, out = make(tmp_path, "\n".join(lines), "r.jsonl"), tmp_path / "o.jsonl"
    assert apply_file(STEP, [path], out, score="s", into=into, session=session) == len(rows)
    key = json.dumps(into, ensure_ascii=False)
    expected = [f"{line[:-1]},{key}:0.25}}" for line in lines]
    assert out.read_text(encoding="utf-8").split("\n") == [*expected, ""]
    for line, row in zip(lines, drawn, strict=True):
        assert json.loads(set_json_key(line, "s", "7")) == row | {"s": 7}


# --- folders ------------------------------------------------------------------------------------


def kinds_of_file(folder: Path, kind: str, columns: dict[str, list]) -> Path:
    path = folder / f"x.{kind}"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if kind == "parquet":
        pq.write_table(pa.table(columns), path)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        lines = [",".join(map(str, row.values())) for row in rows]
        path.write_text("\n".join([",".join(columns), *lines, ""]))
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("folder", ["s=7", "y=0", "s=0.2/y=0"])
def test_a_folder_does_not_replace_a_column(session, tmp_path, kind, folder):
    path = kinds_of_file(tmp_path / folder, kind, {"s": [0.2, 0.7], "y": [0, 1]})
    message = "of x.* must be what its folder says.*either may be meant"
    with pytest.raises(InputError, match=message):
        read_table([path], score="s", label="y", session=session)
    with pytest.raises(InputError, match=message):
        apply_file(STEP, [path], tmp_path / "o.csv", score="s", session=session)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_folders_that_say_what_the_column_says_or_something_new(session, tmp_path, kind):
    names = ("c1", "json", "o0", "day")
    for y, day in ((0, "007"), (1, "a%2Fb")):
        folder = tmp_path / f"c1={y}/json=7/o0=x/day={day}/y={y}"
        kinds_of_file(folder, kind, {"s": [0.2, 0.7], "y": [y, y]})
    pattern = str(tmp_path / "*/*/*/*/*" / f"x.{kind}")
    found = read_table([pattern], score="s", label="y", session=session)
    assert (found.data.total_positive, found.classes) == (2, (0, 1))
    for ending in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"o.{ending}"
        assert apply_file(STEP, [pattern], out, score="s", session=session) == 4
        if ending == "csv":
            rows = [dict(zip(fields(out)[0], row, strict=True)) for row in fields(out)[1:]]
        elif ending == "jsonl":
            rows = [json.loads(line) for line in out.read_text().splitlines()]
        else:
            rows = pq.read_table(out).to_pylist()
        first, last = ([str(row[name]) for name in names] for row in (rows[0], rows[-1]))
        assert (first, last) == (["0", "7", "x", "007"], ["1", "7", "x", "a/b"])
        assert [str(row["y"]) for row in rows] == ["0", "0", "1", "1"]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_columns_that_only_folders_have(session, tmp_path, kind):
    for label in ("0", "1"):
        kinds_of_file(tmp_path / f"label={label}", kind, {"s": [0.2, 0.7]})
    pattern = str(tmp_path / "*" / f"x.{kind}")
    found = read_table([pattern], score="s", label="label", session=session)
    assert (found.classes, found.data.total_positive) == ((0, 1), 2)
    missing = kinds_of_file(tmp_path / "s=__HIVE_DEFAULT_PARTITION__", kind, {"x": [1]})
    out = tmp_path / "o.jsonl"
    apply_file(STEP, [missing], out, score="s", on_missing="null", session=session)
    assert json.loads(out.read_text())["probability"] is None


# --- Parquet ------------------------------------------------------------------------------------


def test_parquet_keeps_values(session, tmp_path):
    columns = {
        "s": pa.array([0.2, 0.7]),
        "ns": pa.array([1, 1577836800123456789], pa.timestamp("ns")),
        "utc": pa.array([1, 1577836800123456], pa.timestamp("us", "UTC")),
        "decimal": pa.array([Decimal("1.23"), None], pa.decimal128(38, 2)),
        "bytes": pa.array([b"\xff\x00", None]),
        "text": pa.array(["a\x00b", ""]),
        "list": pa.array([[1, None], None]),
        "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
        "struct": pa.array([{"a": 1, "b": None}, None]),
        "large": pa.array([1, 2**64 - 1], pa.uint64()),
    }
    path, out = tmp_path / "s.parquet", tmp_path / "o.parquet"
    pq.write_table(pa.table(columns), path)
    apply_file(STEP, [path], out, score="s", session=session)
    assert (
        pq.read_table(out).drop_columns("probability").to_pylist()
        == pq.read_table(path).to_pylist()
    )


ODD_TYPES = {
    "wide": pa.array([Decimal(10) ** 60, None], pa.decimal256(70, 2)),
    "long": pa.array([1, None], pa.duration("us")),
    "case": pa.array([{"a": 1, "A": 2}] * 2, pa.struct([("a", pa.int8()), ("A", pa.int8())])),
    "list": pa.array([[Decimal(10) ** 60], None], pa.list_(pa.decimal256(70, 2))),
}


@pytest.mark.parametrize("name", ODD_TYPES)
def test_parquet_types_that_duckdb_would_change_are_refused(session, tmp_path, name):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"s": [0.2, 0.7], name: ODD_TYPES[name]}), path)
    for out in ("o.parquet", "o.csv"):
        if (name, out) == ("long", "o.csv"):
            continue  # a number in text, whatever its type
        with pytest.raises(InputError, match=rf"{out} cannot hold the values of '{name}'.*Conv"):
            apply_file(STEP, [path], tmp_path / out, score="s", session=session)
        assert not (tmp_path / out).exists()


def test_times_with_a_zone_stay_the_same_instants(session, tmp_path):
    path, out = tmp_path / "a.parquet", tmp_path / "o.parquet"
    zone = pa.array([0, 10**15], pa.timestamp("us", "Europe/Berlin"))
    pq.write_table(pa.table({"s": [0.2, 0.7], "t": zone}), path)
    apply_file(STEP, [path], out, score="s", session=session)
    assert pq.read_table(out)["t"].cast(zone.type).to_pylist() == zone.to_pylist()


def test_labels_that_numbers_cannot_hold_are_refused(session, tmp_path):
    large = 2**64 - 1
    text = f'{{"s":0.2,"y":0}}\n{{"s":0.7,"y":{large}}}\n'
    for path in (
        make(tmp_path, text, "s.jsonl"),
        make(tmp_path, f"s,y\n0.2,0\n0.7,{large}\n"),
    ):
        with pytest.raises(InputError, match=r"labels of at most 63 bits, .* Convert them to text"):
            read_table([path], score="s", label="y", session=session)


def test_names_that_sql_would_change_are_written_to_csv_only(session, tmp_path):
    path = tmp_path / "s.parquet"
    pq.write_table(pa.table({"s": [0.2], "": [1], "S": [2], "C9": [3]}), path)
    with pytest.raises(InputError, match=r"o\.parquet needs columns with different names"):
        apply_file(STEP, [path], tmp_path / "o.parquet", score="s", session=session)
    apply_file(STEP, [path], tmp_path / "o.csv", score="s", session=session)
    assert fields(tmp_path / "o.csv") == [
        ["s", "", "S", "C9", "probability"],
        ["0.2", "1", "2", "3", "0.25"],
    ]


def test_a_file_with_two_names_is_read_once(tmp_path):
    one = tmp_path / "s.csv"
    one.write_text("score,y\n0.1,0\n0.9,1\n")
    (tmp_path / "link.csv").symlink_to(one)
    found = find_files([one, tmp_path / "link.csv", f"{tmp_path}/../{tmp_path.name}/s.csv"])
    assert found == [one]


def test_a_folder_never_replaces_a_column_with_blanks_around_its_name(tmp_path):
    folder = tmp_path / "score=0.9"
    folder.mkdir()
    (folder / "x.csv").write_text("id, score\n1,0.1\n2,0.2\n")
    with pytest.raises(InputError, match="either may be meant"):
        apply_file(STEP, [folder / "x.csv"], tmp_path / "o.csv", score="score")


# --- what cannot be read or written as it is ----------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_not_read_as_an_empty_file(session, tmp_path):
    pipe = tmp_path / "s.csv"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match=r"data must be in a file, but .*s\.csv is a pipe .* cat"):
        apply_file(STEP, [pipe], tmp_path / "o.csv", score="s", session=session)


def test_folders_must_not_contradict_each_other(session, tmp_path):
    same = make(tmp_path, "s,y\n0.2,0\n0.7,1\n", "x=1/x=1/s.csv")
    assert apply_file(STEP, [same], tmp_path / "o.csv", score="s", session=session) == 2
    other = make(tmp_path, "s,y\n0.2,0\n0.7,1\n", "x=1/x=2/s.csv")
    with pytest.raises(InputError, match=r"must say one thing of 'x', but they say '1' and '2'"):
        apply_file(STEP, [other], tmp_path / "o.csv", score="s", session=session)


def test_parquet_names_that_cannot_be_told_apart_are_said(session, tmp_path):
    columns = [pa.array([0.2, 0.7]), pa.array([1, 2]), pa.array([3, 4])]
    pq.write_table(pa.Table.from_arrays(columns, names=["s", "C2", ""]), tmp_path / "s.parquet")
    with pytest.raises(InputError, match="each of its columns a name of its own"):
        apply_file(STEP, [tmp_path / "s.parquet"], tmp_path / "o.csv", score="s", session=session)


NAN, INF = float("nan"), float("inf")
NOT_JSON = {
    "NaN": [0.5, NAN, None],
    "infinity": pa.array([-INF, 0.5, None], pa.float32()),
    "in a list": [[0.5], [0.5, NAN], None],
    "in a struct": [{"x": INF}, {"x": 0.5}, None],
    "in a map": pa.array([[("a", NAN)], None, []], pa.map_(pa.string(), pa.float64())),
}


@pytest.mark.parametrize("name", NOT_JSON)
def test_json_never_holds_what_is_no_json(session, tmp_path, name):
    path, out = tmp_path / "s.parquet", tmp_path / "o.jsonl"
    pq.write_table(pa.table({"s": [0.2, 0.7, 0.1], name: NOT_JSON[name]}), path)
    with pytest.raises(InputError, match=f"column '{name}' holds NaN or infinite .* .parquet or"):
        apply_file(STEP, [path], out, score="s", session=session)
    assert not out.exists()
    assert apply_file(STEP, [path], tmp_path / "o.parquet", score="s", session=session) == 3


def test_json_holds_finite_numbers_and_words_of_that_name(session, tmp_path):
    path, out = tmp_path / "s.parquet", tmp_path / "o.jsonl"
    rows = {
        "s": [0.2, 0.7, 0.1],
        "NaN": [{"x": 0.5, "n": 'NaN\\"I'}, {"x": None, "n": "Infinity"}, None],
        "l": [[0.5, None], None, []],
    }
    pq.write_table(pa.table(rows), path)
    assert apply_file(STEP, [path], out, score="s", session=session) == 3
    found = [json.loads(line) for line in out.read_text().splitlines()]
    for name, values in rows.items():
        assert [row[name] for row in found] == values


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_truth_values_are_scores_of_1_and_0_in_every_kind_of_file(session, tmp_path, kind):
    told, y = [True, False, True, False], [1, 0, 0, 1]
    path = tmp_path / f"s.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"s": told, "y": y, "w": [True] * 4}), path)
    elif kind == "jsonl":
        rows = [{"s": s, "y": label, "w": True} for s, label in zip(told, y, strict=True)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_text("s,y,w\ntrue,1,TRUE\nFalse,0,true\n TRUE ,0,true\nfalse,1,true\n")
    wanted = cal.ScoreTable.from_arrays(told, y)
    assert read_table([path], score="s", label="y", weight="w", session=session).data == wanted
    out = tmp_path / "o.csv"
    apply_file(STEP, [path], out, score="s", session=session)
    assert [row[-1] for row in fields(out)[1:]] == ["0.75", "0.25", "0.75", "0.25"]
