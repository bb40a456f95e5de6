"""Measures of several classes in frames, which have a column of probabilities for each."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.errors import InputError
from lazy_frames import KINDS, LAZY, frame

RNG = np.random.default_rng(0)
P = RNG.dirichlet([1, 1, 1, 2], 500).round(2)
P[:, 3] = np.clip(1.0 - P[:, :3].sum(axis=1), 0.0, 1.0)
CODES = (P.cumsum(axis=1) < 0.999 * RNG.random((500, 1))).sum(axis=1)
KIND = np.array(["ape", "bee", "cat", "dog"])[CODES]
W = RNG.integers(0, 4, 500).astype(float)
NAMES = ["p0", "p1", "p2", "p3"]
COLUMNS = {name: P[:, j] for j, name in enumerate(NAMES)} | {"kind": KIND, "code": CODES, "w": W}


def same(found, wanted):
    assert list(found.after) == list(wanted.after)
    for name, value in wanted.after.items():
        assert found.after[name] == pytest.approx(value, rel=1e-13, abs=1e-14)
    assert found.labels == wanted.labels
    assert found.weight == wanted.weight
    for name, values in wanted.by_class.items():
        assert found.by_class[name] == pytest.approx(values, rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("bins", [10, "auto"])
def test_every_frame_gives_what_the_rows_give_in_memory(kind, weight, bins):
    options = {"bins": bins, "measures": "all", "level": None}
    there = frame(kind, COLUMNS)
    found = cal.evaluate(there, NAMES, label="kind", sample_weight=weight, **options)
    same(found, cal.evaluate(KIND, P, sample_weight=None if weight is None else W, **options))


@pytest.mark.parametrize("kind", LAZY)
def test_classes_are_named_by_their_order_or_by_column(kind):
    there = frame(kind, COLUMNS)
    wanted = cal.evaluate(CODES, P, level=None)
    same(cal.evaluate(there, NAMES, label="code"), wanted)
    turned = {3 - j: NAMES[3 - j] for j in range(4)}
    found = cal.evaluate(there, turned, label="code")
    assert found.labels == (3, 2, 1, 0)
    assert found.after["log_loss"] == pytest.approx(wanted.after["log_loss"], rel=1e-13)
    assert found.by_class["auc"] == pytest.approx(wanted.by_class["auc"][::-1], rel=1e-13)


def test_a_class_that_was_given_probability_0():
    p = P.copy()
    p[0] = [1.0, 0.0, 0.0, 0.0]
    codes = CODES.copy()
    codes[0] = 1
    columns = {name: p[:, j] for j, name in enumerate(NAMES)} | {"code": codes}
    found = cal.evaluate(frame("polars", columns), NAMES, label="code")
    assert found.after["log_loss"] == np.inf
    wanted = cal.evaluate(codes, p, level=None).notes[0]
    assert wanted in found.notes


def test_many_predictions_may_be_grouped_which_a_note_says():
    there = frame("polars", COLUMNS)
    found = cal.evaluate(there, NAMES, label="kind", cells=16)
    wanted = cal.evaluate(KIND, P, level=None)
    assert any(note.startswith("of 4 classes predictions were grouped") for note in found.notes)
    for name in ("log_loss", "brier", "accuracy"):
        assert found.after[name] == pytest.approx(wanted.after[name], rel=1e-13)
    assert "calbin" not in found.after


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({"p0": P[:, 0] + 0.5}, {}, "must be probabilities, each row in"),
        ({"w": W - 1.0}, {"sample_weight": "w"}, "weight column 'w' must be from 0 to"),
        ({}, {"raw": "p0"}, "raw is for two classes where y is a frame"),
        ({}, {"pos_label": "ape"}, "pos_label"),
        ({"kind": np.array(["a", "b"])[CODES % 2]}, {}, "must hold as many classes as p has"),
    ],
)
def test_wrong_rows_and_options_are_refused(change, options, words):
    there = frame("duckdb", COLUMNS | change)
    with pytest.raises(InputError, match=words):
        cal.evaluate(there, NAMES, label="kind", **options)


def test_columns_that_are_not_there_or_come_twice():
    there = frame("duckdb", COLUMNS)
    with pytest.raises(InputError, match="'p9'"):
        cal.evaluate(there, [*NAMES[:3], "p9"], label="kind")
    with pytest.raises(InputError, match="a different column for each of three or more classes"):
        cal.evaluate(there, [*NAMES[:3], "p0"], label="kind")
