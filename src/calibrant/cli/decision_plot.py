"""The decision curves of columns of scores, drawn by `calibrant plot --kind decision`."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError, ParameterError

#: thresholds of a drawn decision curve
STEPS = 200


def draw(
    tables: Mapping[str, ScoreTable],
    ends: tuple[float, float] | None = None,
    *,
    format: str = "png",
    title: str | None = None,
) -> bytes:
    """The decision curves of columns of scores, between two thresholds, as the bytes of a file."""
    from calibrant.data.score_kinds import as_probabilities
    from calibrant.diagrams.decision import decision_curve
    from calibrant.diagrams.draw import decision_diagram, render

    read = {name: as_probabilities(table) for name, table in tables.items()}
    for name, table in read.items():
        if table is None:
            raise InputError(
                f"a decision curve needs probabilities, but {name!r} holds points. Leave it out, "
                "or calibrate it first."
            )
    thresholds = None if ends is None else np.linspace(*ends, STEPS)
    curve = decision_curve(None, read, thresholds=thresholds)
    return render(decision_diagram(curve, title=title), format)


def read_thresholds(text: str) -> tuple[float, float]:
    """The ends LOW:HIGH of the thresholds."""
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        low = high = math.nan
    if not 0.0 < low < high < 1.0:
        raise ParameterError(
            "--thresholds must be two numbers with a colon between them, such as 0.05:0.5, above 0 "
            f"and below 1, the smaller first, but {text!r} came."
        )
    return low, high
