"""What is said of scores before anything else, and how often it is wrong."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.special import ndtri

import calibrant as cal
from calibrant.metrics.headlines import FirstLook, LabelNames, first_look

YES_NO = LabelNames.of(["no", "yes"], "yes", "churned", "command line")


def drawn(rng, auc, positives, negatives, round_to=None):
    """Scores of both classes, normal with equal spread, whose true AUC this is."""
    s = np.r_[rng.normal(size=negatives), rng.normal(size=positives) + np.sqrt(2) * ndtri(auc)]
    y = np.repeat([0, 1], [negatives, positives])
    return (s if round_to is None else np.rint(s / round_to) * round_to), y


def shares(auc, positives, negatives, *, count, weighted=False, round_to=None):
    """How often each is found, in percent."""
    rng = np.random.default_rng(7)
    found = Counter()
    for _ in range(count):
        s, y = drawn(rng, auc, positives, negatives, round_to)
        w = rng.lognormal(0.0, 0.5, len(y)) if weighted else None
        found[first_look(cal.ScoreTable.from_arrays(s, y, w)).found] += 1
    return {name: 100 * n / count for name, n in found.items()}


# --- error rates: claims are made at 99 %, so that each end may fail in 0.5 % of samples ----------


@pytest.mark.full
@pytest.mark.parametrize("sizes", [(10, 10), (15, 300), (60, 60), (500, 1500)])
@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"round_to": 0.5}])
def test_worthless_scores_are_seldom_called_anything_else(sizes, options):
    found = shares(0.5, *sizes, count=1000, **options)
    assert found.get("wrong way", 0) <= 1.3
    assert found.get("something", 0) <= 1.3
    assert found.get("no order", 0) <= 0.6


@pytest.mark.parametrize("sizes", [(10, 10), (60, 60), (500, 1500), (1200, 1200)])
def test_useful_scores_are_seldom_called_worthless(sizes):
    found = shares(0.55, *sizes, count=600)
    assert found.get("nothing", 0) <= 1.3
    assert found.get("wrong way", 0) <= 0.7
    good = shares(0.65, *sizes, count=300)
    assert not {"nothing", "wrong way"} & set(good)


def test_few_rows_tell_nothing_and_many_tell_it():
    assert shares(0.5, 15, 15, count=200)["not told"] > 97
    assert shares(0.5, 2000, 2000, count=100)["nothing"] > 95
    assert shares(0.3, 500, 1500, count=100) == {"wrong way": 100}


# --- what is said -------------------------------------------------------------------------------


def test_the_wrong_way_asks_for_the_other_label():
    rng = np.random.default_rng(0)
    look = first_look(cal.ScoreTable.from_arrays(*drawn(rng, 0.2, 400, 600)))
    said = look.headline(YES_NO)
    assert said.startswith("These scores run the wrong way: AUC 0.18 (99 %")
    assert "99 % interval" in said
    asked = (
        "Do low scores mean 'yes', as credit scores do? Say {}. Is it 'no' that is meant? Say {}."
    )
    assert said.endswith(asked.format("--direction falling", "--pos-label no"))
    python = look.headline(LabelNames.of(["no", "yes"], "yes"))
    assert python.endswith(asked.format('direction="falling"', "pos_label='no'"))
    measured = look.headline(YES_NO._replace(face="evaluate"))
    assert measured.endswith("go with 'no'. Is it 'no' that is meant? Say --pos-label no.")
    assert look.headline().endswith("Did you mean the other label as pos_label?")
    page = look.headline(YES_NO._replace(face="page"))
    both = 'direction="falling" (--direction falling)', "pos_label='no' (--pos-label no)"
    assert page.endswith(asked.format(*both))
    blank = LabelNames.of(["not yet", "yes"], "yes", face="command line")
    assert "--pos-label 'not yet'" in look.headline(blank)


def test_worthless_scores_name_the_column():
    rng = np.random.default_rng(0)
    look = first_look(cal.ScoreTable.from_arrays(*drawn(rng, 0.5, 2000, 3000)))
    assert look.useless
    assert look.headline(YES_NO).startswith("These scores say nothing about `churned`: AUC 0.5")


def test_scores_that_neither_rise_nor_fall_but_differ():
    rng = np.random.default_rng(0)
    s = rng.random(4000)
    y = rng.random(4000) < np.where(abs(s - 0.5) < 0.25, 0.6, 0.2)
    look = first_look(cal.ScoreTable.from_arrays(s, y))
    assert look.found == "no order"
    assert "neither rise nor fall" in look.headline()


def test_one_class_and_few_rows_come_first():
    table = cal.ScoreTable.from_arrays([0.1, 0.2], [0, 0], classes=[0, 1])
    look = first_look(table)
    assert look == FirstLook("one class", None, None, None, 0.0, 2.0)
    assert look.headline(YES_NO).startswith("There is one class only: every row is 'no'.")
    s = np.linspace(0.0, 1.0, 100)
    few = first_look(cal.ScoreTable.from_arrays(s, np.arange(100) % 30 == 29))
    assert few.few
    assert few.headline(YES_NO).startswith("Only 3 rows are 'yes': fewer than 10 of a class")
    heavy = cal.ScoreTable.from_arrays(s, np.arange(100) % 30 == 29, np.full(100, 50.0))
    assert first_look(heavy) == few  # weights are not rows
    assert not first_look(heavy, "counts").few


def test_good_scores_have_no_headline():
    rng = np.random.default_rng(0)
    look = first_look(cal.ScoreTable.from_arrays(*drawn(rng, 0.7, 200, 200)))
    assert (look.sound, look.useless, look.headline(YES_NO)) == (True, False, "")


# --- who says it --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrationWarning")
def test_auto_calibrator_says_it_first_and_praises_nothing():
    rng = np.random.default_rng(0)
    s, y = drawn(rng, 0.8, 500, 700)
    p = 1 / (1 + np.exp(-s))
    auto = cal.AutoCalibrator().fit(1 - p, np.where(y == 1, "yes", "no"))
    assert auto.explain().startswith("These scores run the wrong way")
    assert "gains" not in auto.explain()
    assert auto.advice_[0].code == "upside_down"
    noise = cal.AutoCalibrator().fit(rng.random(3000), rng.random(3000) < 0.3)
    assert noise.explain().startswith("These scores say nothing about the labels")
    assert "gains" not in noise.explain()
    assert noise.advice_[0].code == "no_separation"
    alone = cal.AutoCalibrator(classes=[0, 1]).fit(p, np.zeros(len(p)))
    assert alone.explain().startswith("There is one class only")
    assert alone.advice_[0].code == "one_class"
    good = cal.AutoCalibrator().fit(p, y)
    assert good.look_.sound
    assert not good.explain().startswith("These scores")


def test_an_evaluation_notes_it():
    rng = np.random.default_rng(0)
    s, y = drawn(rng, 0.8, 500, 700)
    wrong = cal.evaluate(y, 1 / (1 + np.exp(s)))
    assert wrong.look.found == "wrong way"
    assert "note: These scores run the wrong way" in str(wrong)
    assert wrong.to_dict()["look"]["found"] == "wrong way"
    assert "note: These" not in str(cal.evaluate(y, 1 / (1 + np.exp(-s))))
