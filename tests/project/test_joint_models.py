"""The example on marginals of joint models means what it says."""

from __future__ import annotations

import importlib.util
import re
import sys

import numpy as np
import pytest

import calibrant as cal

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@pytest.fixture(scope="module")
def page(root):
    path = root / "docs" / "scripts" / "make_gallery.py"
    spec = importlib.util.spec_from_file_location("make_gallery", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_gallery"] = module  # its dataclass looks for it there
    spec.loader.exec_module(module)
    return module.page_of("joint_models")


def outputs(text):
    return re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)


def numbers_of(page, block):
    """The numbers of each line of what a block prints."""
    return [[float(n) for n in NUMBER.findall(line)] for line in outputs(page)[block].splitlines()]


def test_what_the_page_says_is_what_it_shows(page):
    (gain_of_structures, gain_of_rows) = (line[2:] for line in numbers_of(page, 0))
    assert np.ptp(gain_of_structures) > 1.7 * np.ptp(gain_of_rows)
    (before, after), between = numbers_of(page, 1)
    assert between[0] > 0
    assert before - after == pytest.approx(np.mean(between), abs=0.002)
    for _, low, high, row_low, row_high in numbers_of(page, 2):
        assert high - low > row_high - row_low
    (spread,), (rows, held_by_rows), (structures, held) = numbers_of(page, 3)
    assert rows < 0.6 * spread  # "about half of what they must be"
    assert structures == pytest.approx(spread, rel=0.15)
    assert held_by_rows < 75
    assert held > 88
    (rows, chance, new), (structures, _, new_too) = numbers_of(page, 4)
    assert rows < new - 2 * chance  # folds of rows promise too much
    assert abs(structures - new_too) < 2 * chance
    (quiet, quiet_before), (noisy, noisy_before) = numbers_of(page, 5)
    assert quiet > quiet_before
    assert noisy < noisy_before


def test_marginals_are_exact(page):
    """The forward–backward pass of the page against all 2^6 sequences."""
    names = {}
    exec(re.search(r"```python\n(.*?)```", page, flags=re.DOTALL)[1], names)
    names["LENGTH"] = 6
    x = np.random.default_rng(0).normal(0, 2, size=(3, 6))
    states = np.array(list(np.ndindex(*[2] * 6)))
    moves = np.where(states[:, 1:] == states[:, :-1], 0.9, 0.1).prod(axis=1)
    for row, found in zip(x, names["marginals"](x, stay=0.9, noise=1.2), strict=True):
        weight = moves * np.exp(-0.5 * ((row - (2 * states - 1)) / 1.2) ** 2).prod(axis=1)
        np.testing.assert_allclose(found, weight @ states / weight.sum(), atol=1e-12)


def test_structures_are_held_together():
    """What the page relies on: no structure is on both sides of a fold."""
    seen = []

    class Watched(cal.Platt):
        def _fit(self, table):
            seen.append(table)
            return super()._fit(table)

    groups = np.repeat(np.arange(10), 6)
    scores = groups + np.tile(np.linspace(0.1, 0.6, 6), 10)  # the score tells the structure
    y = np.tile([0, 1, 0, 1, 1, 0], 10)
    cal.AutoCalibrator(candidates={"watched": Watched()}).fit(scores, y, groups=groups)
    whole = {len(np.unique(np.floor(table.scores))) * 6 == len(table.scores) for table in seen}
    assert whole == {True}
    assert min(len(table.scores) for table in seen) < 60
