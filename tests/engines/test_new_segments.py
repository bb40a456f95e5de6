"""Segments that a calibrator has not seen: counted and told of, and numbers told by their value."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import calibrant as cal
from calibrant.cli.app import app
from calibrant.data.segments import NewSegments
from calibrant.engines.apply import segment_keys
from calibrant.errors import CalibrationWarning, InputError, ParameterError
from calibrant.fitting.fitted import Fitted
from calibrant.maps import Piecewise, Segmented
from file_jobs import apply_file
from lazy_frames import KINDS, frame

constant = Piecewise.constant
BY_NUMBER = Segmented(
    constant(0.5), (1, 2, 100_000, 0, -3), tuple(map(constant, (0.1, 0.2, 0.3, 0.4, 0.6)))
)
BY_WORD = Segmented(constant(0.5), ("1", "2"), tuple(map(constant, (0.1, 0.2))))


def applied(kind: str, map_: Segmented, segments: Any, **options: Any) -> list[float]:
    rows = frame(kind, {"s": [0.3] * len(segments), "g": segments})
    made = cal.add_probabilities(map_, rows, score="s", segment="g", **options)
    return nw.from_native(made).lazy().collect("pyarrow").get_column("probability").to_list()


# --- frames -------------------------------------------------------------------------------------

MOST = {"words": (BY_WORD, ["1.0", "01", "2"]), "numbers": (BY_NUMBER, [7, 8, 2])}


@pytest.mark.parametrize("case", MOST)
@pytest.mark.parametrize("kind", KINDS)
def test_most_segments_are_new(kind, case):
    map_, segments = MOST[case]
    wanted = [0.5, 0.5, 0.2]
    with pytest.warns(CalibrationWarning, match=r"2 of 3 rows have a segment.*column 'g'"):
        assert sorted(applied(kind, map_, segments)) == sorted(wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sorted(applied(kind, map_, segments, on_new_segment="allow")) == sorted(wanted)
        few = [*segments[:1], *segments[2:] * 3]
        assert sorted(applied(kind, map_, few)) == [0.2, 0.2, 0.2, 0.5]
    for on_missing in ("error", "null"):
        with pytest.raises(InputError, match=r"1 of 4 rows has a segment.*such as"):
            applied(kind, map_, few, on_new_segment="error", on_missing=on_missing)
    known = [segments[2]] * 3
    assert applied(kind, map_, known, on_new_segment="error") == [0.2] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_segment_are_not_new(kind):
    segments = pa.array(["1", None, None, None])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = applied(kind, BY_WORD, segments, on_missing="null", on_new_segment="error")
    assert [p for p in found if p is not None and p == p] == [0.1]  # noqa: PLR0124


def test_nothing_is_run_where_missing_values_are_allowed():
    """Not even to count segments."""

    def fail(_: Any) -> Any:
        raise AssertionError("the frame was run")

    rows = pl.LazyFrame({"s": [0.3], "g": ["?"]}).map_batches(
        fail, schema={"s": pl.Float64, "g": pl.String}
    )
    cal.add_probabilities(BY_WORD, rows, score="s", segment="g", on_missing="null")
    known = Fitted(BY_WORD, (0, 1), 1, score_range=cal.data.ScoreRange("probability", 0.0, 1.0))
    for word in ("clip", "allow"):
        cal.add_probabilities(known, rows, score="s", segment="g", on_missing="null", on_range=word)


@pytest.mark.parametrize("kind", KINDS)
def test_where_scores_are_counted_so_are_segments(kind):
    known = Fitted(BY_WORD, (0, 1), 1, score_range=cal.data.ScoreRange("probability", 0.0, 1.0))
    rows = frame(kind, {"s": [0.3, 0.4], "g": ["1", "?"]})
    more = {"score": "s", "segment": "g", "on_missing": "null"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cal.add_probabilities(known, rows, **more)
    rows = frame(kind, {"s": [0.3, 0.4], "g": ["!", "?"]})
    with pytest.warns(CalibrationWarning, match=r"2 of 2 rows have a segment") as found:
        cal.add_probabilities(known, rows, **more)
    assert [one.filename for one in found] == [__file__]


def test_what_may_be_asked():
    with pytest.raises(ParameterError, match="on_new_segment must be 'warn' or"):
        applied("polars", BY_WORD, ["1"], on_new_segment="ignore")


# --- segments of the fit that have the map of all rows -------------------------------------------


def of_fit(shrinkage: float | str, *, numbers: bool = False) -> tuple[Fitted, list[Any]]:
    """A calibrator of two segments, the second of which is tiny, and one row of each."""
    rng = np.random.default_rng(0)
    scores, segments = rng.random(43), np.repeat([7, 8] if numbers else ["7", "8"], [40, 3])
    c = cal.SegmentedCalibrator(cal.Platt(), shrinkage=shrinkage)
    c.fit(scores, rng.random(43) < scores, segments=segments)
    assert c.shrinkage_ == (np.inf if shrinkage == "cv" else shrinkage)
    return c.to_fitted(), [7, 8] if numbers else ["7", "8"]


@pytest.mark.parametrize("numbers", [True, False])
@pytest.mark.parametrize("shrinkage", [0.0, "cv"])
@pytest.mark.parametrize("kind", ["polars", "duckdb", "pandas"])
def test_segments_of_the_fit_are_never_new(kind, shrinkage, numbers):
    fitted, seen = of_fit(shrinkage, numbers=numbers)
    assert fitted.map.keys == (() if shrinkage else (seen[0],))
    again = Fitted.from_dict(fitted.to_dict()).map
    for map_ in (again, cal.adjust_prior(again, train_rate=0.5, target_rate=0.1)):
        assert map_.seen == tuple(seen)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            applied(kind, map_, seen, on_new_segment="error")
            applied(kind, map_, [seen[1]] * 3, on_new_segment="error")
        new = [9, 9, seen[1]] if numbers else ["9", "9", seen[1]]
        with pytest.warns(CalibrationWarning, match="2 of 3 rows have a segment.*such as '?9"):
            applied(kind, map_, new)
        with pytest.raises(InputError, match="the calibrator's segments are"):
            applied(kind, map_, [str(key) if numbers else int(key) for key in seen])


@pytest.mark.parametrize("kind", KINDS)
def test_a_map_that_knows_no_segments_calls_none_new(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert applied(kind, Segmented(constant(0.5), (), ()), [1], on_new_segment="error") == [0.5]


def test_segments_of_the_fit_are_told_by_their_kind():
    fitted, _ = of_fit("cv", numbers=True)
    with pytest.raises(InputError, match="segments must be numbers, as the 2 known ones are"):
        fitted.calibrate([0.5], segments=["7"])
    both = Segmented(constant(0.5), ("a",), (constant(0.1),), default_keys=(1,))
    assert both([0.3, 0.3], [1, 1]).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("numbers", [True, False])
@pytest.mark.parametrize("shrinkage", [0.0, "cv"])
def test_segments_of_the_fit_are_never_new_in_files(tmp_path, shrinkage, numbers):
    fitted, _ = of_fit(shrinkage, numbers=numbers)
    few = run(tmp_path, ["7", "8", "8 "], fitted=fitted)
    assert few.exit_code == 0, few.output
    assert "has not seen" not in few.stdout + few.stderr
    most = run(tmp_path, ["8", "10", "9"], fitted=fitted)
    assert "warning: 2 of 3 rows have a segment" in most.stderr
    spelled = run(tmp_path, ["08", "8.0", "7"], fitted=fitted)
    assert "has not seen" not in spelled.stdout + spelled.stderr


def test_keys_of_files_that_only_the_common_map_has():
    one, two = constant(0.1), constant(0.2)
    map_, (spelling,) = segment_keys(Segmented(one, ("a ",), (two,), default_keys=("b", " b", 3)))
    assert spelling.trimmed
    assert not spelling.whole
    assert map_.seen == ("a", "b", "3")
    _, (spelling,) = segment_keys(Segmented(one, ("a",), (two,), default_keys=("a ",)))
    assert not spelling.trimmed
    with pytest.raises(InputError, match="files cannot tell apart"):
        segment_keys(Segmented(one, (1,), (two,), default_keys=("1",)))


# --- files --------------------------------------------------------------------------------------

SPELLINGS = {
    **dict.fromkeys(["1", "1.0", "01", " +1 ", "1.", "true", "TRUE"], 0.1),
    **dict.fromkeys(["2.00", "2"], 0.2),
    **dict.fromkeys(["1e+05", "1e5", "100000", "1.0E5", "100000.0"], 0.3),
    **dict.fromkeys(["0", "-0", "000", "0.0", "-0.0", "false"], 0.4),
    **dict.fromkeys(["-3", "-3.0", "-03"], 0.6),
    **dict.fromkeys(["4", "x", "1.5", "1e-1", "1-1", "1 1", "1e99", "0x1"], 0.5),
}


def test_numbers_of_csv_files_are_told_by_their_value(tmp_path):
    (tmp_path / "a.csv").write_text("s,g\n" + "".join(f"0.3,{word}\n" for word in SPELLINGS))
    new = NewSegments()
    apply_file(
        Fitted(BY_NUMBER, (0, 1), 1),
        [tmp_path / "a.csv"],
        tmp_path / "out.csv",
        score="s",
        segment="g",
        new_segments=new,
    )
    made = pd.read_csv(tmp_path / "out.csv")["probability"].tolist()
    assert dict(zip(SPELLINGS, made, strict=True)) == SPELLINGS
    assert (new.rows, new.new) == (len(SPELLINGS), 8)


def test_numbers_of_other_files_are_told_by_their_value(tmp_path):
    words = ["1", "01", "2.0", "4"]
    pq.write_table(pa.table({"s": [0.3] * 4, "g": words}), tmp_path / "a.parquet")
    lines = [json.dumps({"s": 0.3, "g": word}) for word in words]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    for name in ("a.parquet", "a.jsonl"):
        fitted, out = Fitted(BY_NUMBER, (0, 1), 1), tmp_path / "out.csv"
        apply_file(fitted, [tmp_path / name], out, score="s", segment="g")
        assert pd.read_csv(out)["probability"].tolist() == [0.1, 0.1, 0.2, 0.5]


def test_text_that_spells_numbers_plainly_is_told_by_its_value(tmp_path):
    (tmp_path / "a.csv").write_text("s,g\n0.3,1\n0.3,01\n0.3,2.0\n")
    fitted, out, new = Fitted(BY_WORD, (0, 1), 1), tmp_path / "out.csv", NewSegments()
    apply_file(fitted, [tmp_path / "a.csv"], out, score="s", segment="g", new_segments=new)
    assert pd.read_csv(out)["probability"].tolist() == [0.1, 0.1, 0.2]
    assert new.new == 0


def test_words_are_told_by_their_spelling(tmp_path):
    (tmp_path / "a.csv").write_text("s,g\n0.3,1\n0.3,01\n0.3,1.0\n")
    words = Segmented(constant(0.5), ("1", "x"), tuple(map(constant, (0.1, 0.2))))
    fitted, out, new = Fitted(words, (0, 1), 1), tmp_path / "out.csv", NewSegments()
    apply_file(fitted, [tmp_path / "a.csv"], out, score="s", segment="g", new_segments=new)
    assert pd.read_csv(out)["probability"].tolist() == [0.1, 0.5, 0.5]
    assert (new.rows, new.new, new.most) == (3, 2, True)


# --- the command --------------------------------------------------------------------------------


def run(folder: Path, words: list[str], *options: str, fitted: Fitted | None = None) -> Any:
    (folder / "a.csv").write_text("s,g\n" + "".join(f"0.3,{word}\n" for word in words))
    cal.save(fitted or Fitted(BY_WORD, (0, 1), 1), folder / "c.json")
    files = [str(folder / name) for name in ("c.json", "a.csv")]
    more = ["-o", str(folder / "out.csv"), "-s", "s", "--segment", "g", *options]
    return CliRunner().invoke(app, ["apply", *files, *more])


def test_the_command_says_how_many(tmp_path):
    few = run(tmp_path, ["1", "2", "x"])
    assert "1 of 3 rows has a segment that the calibrator has not seen, such as 'x'" in few.stdout
    assert "warning" not in few.stderr
    most = run(tmp_path, ["1", "3", "x"])
    assert "warning: 2 of 3 rows have a segment" in most.stderr
    none = run(tmp_path, ["1", "2", "1"])
    assert "has not seen" not in none.stdout + none.stderr


def test_the_command_says_how_many_to_machines(tmp_path):
    found = run(tmp_path, ["1", "3", "x"], "--json")
    assert json.loads(found.stdout)["rows_of_new_segments"] == 2


# --- arrays -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["calibrate", "predict_proba", "predict"])
def test_arrays_of_new_segments_are_warned_of(method):
    known = Segmented(constant(0.5), (1,), (constant(0.1),), default_keys=(2,))
    ask = getattr(Fitted(known, (0, 1), 1), method)
    words = (
        r"2 of 3 rows have a segment that the calibrator has not seen, such as 7: they get .* 1\."
    )
    with pytest.warns(CalibrationWarning, match=words) as told:
        found = ask([0.3] * 3, segments=[2, 7, 8])
    assert len(told) == 1
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(found, ask([0.3] * 3, segments=[2, 2, 7]))  # the fewer are no news
        ask([0.3] * 3, segments=iter([1, 2, 1]))
    with pytest.warns(CalibrationWarning, match="such as 'x'"):
        ask([0.3] * 3, segments=iter([1, "x", "y"]))
