"""The section of a report that tells in which groups the map is wrong."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.errors import InputError
from calibrant.metrics import multicalibration
from calibrant.reports.page import MOST_GROUPS

NASTY = "</script><b>it's"
RNG = np.random.default_rng(2)
N = 2000
Z = RNG.normal(size=N)
FRAME = pd.DataFrame({"country": RNG.choice(["de", NASTY], N), "age": RNG.integers(18, 90, N)})
Y = RNG.random(N) < 1 / (1 + np.exp(-Z - 1.5 * (FRAME["country"] == NASTY)))


@pytest.fixture(scope="module")
def page():
    return cal.calibration_report(Z, Y, calibrator=cal.Platt(), features=FRAME)


def test_the_groups_are_those_of_the_final_map(page):
    wanted = multicalibration(Y, page.fitted.calibrate(Z), features=FRAME)
    assert page.groups.groups == wanted.groups[:MOST_GROUPS]
    assert (page.groups.looked_at, page.groups.wrong) == (wanted.looked_at, wanted.wrong)
    assert NASTY in page.groups.groups[0].name
    assert page.groups.groups[0].verdict == "too low"
    assert json.loads(json.dumps(page.to_dict()))["groups"]["wrong"] == wanted.wrong


def test_the_section_is_on_the_page_and_nothing_in_it_is_markup(page):
    html = page.to_html()
    assert "Where is it wrong?" in html
    assert NASTY not in html
    assert html.count('class="dots"') == 1
    shown = html[html.index('class="dots"') :]
    assert shown.count('class="point"') >= len(page.groups.shown)
    assert html == cal.calibration_report(Z, Y, calibrator=cal.Platt(), features=FRAME).to_html()


def test_without_features_there_is_no_section():
    plain = cal.calibration_report(Z, Y, calibrator=cal.Platt())
    assert plain.groups is None
    assert "Where is it wrong?" not in plain.to_html()


def test_right_predictions_have_a_section_too():
    y = RNG.random(N) < 1 / (1 + np.exp(-Z))
    made = cal.calibration_report(Z, y, calibrator=cal.Platt(), features=FRAME[["age"]])
    assert made.groups.wrong == 0
    assert "None of" in made.to_html()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"features": FRAME[:10]}, "scores has 2000 and features has 10"),
        ({"features": FRAME, "calibrator": {"mine": np.full(N, 0.5)}}, "need a map of the score"),
    ],
    ids=["length", "probabilities"],
)
def test_features_that_cannot_be_looked_at_are_refused(words, message):
    with pytest.raises(InputError, match=message):
        cal.calibration_report(Z, Y, **words)


def test_tables_and_several_classes_have_no_groups():
    table = cal.ScoreTable.from_counts([0.2, 0.8], [50, 10], [10, 50])
    with pytest.raises(InputError, match="a ScoreTable came, which has none"):
        cal.calibration_report(table, features=FRAME)
    with pytest.raises(InputError, match="two classes, but several columns came"):
        cal.calibration_report(np.full((N, 3), 1 / 3), np.arange(N) % 3, features=FRAME)
