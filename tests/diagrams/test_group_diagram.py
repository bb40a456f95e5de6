"""The picture of groups where predictions are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from calibrant.diagrams import group_diagram
from calibrant.errors import InputError
from calibrant.metrics import multicalibration

RNG = np.random.default_rng(0)
CITY = RNG.choice(["Bonn", "$5 Rome"], (800, 1))
P = RNG.random(800)
WRONG = multicalibration(
    RNG.random(800) < np.where(CITY[:, 0] == "Bonn", P**3, P), P, features=CITY
)
RIGHT = multicalibration(RNG.random(800) < P, P, features=CITY, random_state=1)


@pytest.mark.parametrize("found", [WRONG, RIGHT], ids=["wrong", "right"])
def test_every_group_shown_has_a_dot_its_interval_and_its_name(found):
    ax = group_diagram(found, title="Where?").axes[0]
    bars = [line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_label() != "_zero"]
    dots = [float(line.get_xdata()[0]) for line in ax.lines if line.get_marker() == "o"]
    assert dots == [one.difference for one in found.shown]
    ends = [tuple(line.get_xdata()) for line in bars]
    assert ends == [(one.low, one.high) for one in found.shown]
    assert [text.get_text().replace("\\$", "$") for text in ax.texts] == [
        one.name for one in found.shown
    ]
    for line, text in zip(
        (line for line in ax.lines if line.get_label() == "_zero"), ax.texts, strict=True
    ):  # the line of 0 is left out where a name stands
        assert text.get_position()[1] < line.get_ydata().min()
    low, high = ax.get_xlim()
    assert low < min(0.0, *(one.low for one in found.shown))
    assert high > max(0.0, *(one.high for one in found.shown))


def test_wrong_groups_look_different():
    ax = group_diagram(WRONG).axes[0]
    other = group_diagram(RIGHT).axes[0]
    assert WRONG.shown[0].wrong
    assert not RIGHT.shown[0].wrong
    assert ax.lines[1].get_color() != other.lines[1].get_color()


def test_other_axes_and_other_values():
    figure = Figure()
    assert group_diagram(WRONG, ax=figure.add_subplot()) is figure
    with pytest.raises(InputError, match="a Multicalibration must come, but dict came"):
        group_diagram({})
