"""Segments are one column: several are refused, and never in part."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import calibrant as cal
from calibrant.cli.app import app
from calibrant.errors import InputError

RNG = np.random.default_rng(0)
SCORES = RNG.random(200)
Y = RNG.random(200) < SCORES
A, B = RNG.choice(["x", "y"], 200), RNG.choice(["p", "q"], 200)
SEVERAL = {
    "pandas": pd.DataFrame({"a": A, "b": B}),
    "polars": pl.DataFrame({"a": A, "b": B}),
    "arrow": pl.DataFrame({"a": A, "b": B}).to_arrow(),
    "list": [A, B],
    "series": [pd.Series(A), pd.Series(B)],
    "matrix": np.column_stack((A, B)),
    "tuples": list(zip(A.tolist(), B.tolist(), strict=True)),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_fit_and_calibrate_refuse_several_columns(name):
    with pytest.raises(InputError, match="Join several columns to one"):
        cal.SegmentedCalibrator().fit(SCORES, Y, segments=SEVERAL[name])
    c = cal.SegmentedCalibrator(shrinkage=1.0).fit(SCORES, Y, segments=A)
    with pytest.raises(InputError, match="Join several columns to one"):
        c.calibrate(SCORES, segments=SEVERAL[name])


def test_a_frame_of_one_column_is_a_column():
    one = cal.SegmentedCalibrator(shrinkage=1.0).fit(SCORES, Y, segments=A)
    two = cal.SegmentedCalibrator(shrinkage=1.0).fit(SCORES, Y, segments=pd.DataFrame({"a": A}))
    assert one.map_ == two.map_


def test_frames_refuse_several_names():
    c = cal.SegmentedCalibrator(shrinkage=1.0).fit(SCORES, Y, segments=A)
    rows = pl.LazyFrame({"s": SCORES, "a": A, "b": B})
    with pytest.raises(InputError, match=r"name of one column.*Join several"):
        cal.add_probabilities(c, rows, score="s", segment=["a", "b"])


def test_the_command_line_drops_no_segment_column_in_silence(tmp_path):
    data = tmp_path / "s.csv"
    pd.DataFrame({"s": SCORES, "y": Y.astype(int), "a": A, "b": B}).to_csv(data, index=False)
    words = ["fit", str(data), "-s", "s", "-l", "y", "--segment", "a", "--segment=b"]
    found = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "c.json")])
    assert found.exit_code == 2
    assert "--segment names one column" in " ".join(found.output.split())
    assert not (tmp_path / "c.json").exists()
