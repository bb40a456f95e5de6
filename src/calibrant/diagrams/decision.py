"""Decision curves, computed: the net benefit of models against the threshold of acting."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.array_types import Array
from calibrant.data.door import read_number_column
from calibrant.data.frozen import Frozen
from calibrant.diagrams.curve import ONLY, printed_columns, read_several, some_of
from calibrant.errors import ParameterError
from calibrant.metrics.decisions import benefits, treat_all
from calibrant.metrics.tables import check_number, read_table, table_for_test
from calibrant.result_tables import PlainFields, shown_value

#: the smallest step between thresholds of a curve where none are given is one part of so many
FINEST = 10**6
#: a printed table shows at most so many thresholds
MOST_LINES = 11


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve(PlainFields, Frozen):
    """The net benefit of one or more models at each threshold.

    Attributes
    ----------
    names : tuple of str
    thresholds : array of shape (m,)
        Ascending, between 0 and 1.
    net_benefit : array of shape (k, m)
        Of each model, as `calibrant.metrics.net_benefit` has it.
    lower, upper : arrays of shape (k, m), or None
        Intervals, threshold by threshold; None without them.
    acted : array of shape (k, m)
        The share of the weight that is acted upon.
    treat_all : array of shape (m,)
        The net benefit of acting on every row. That of acting on none is 0.
    rate : float
        The share of positives, which no net benefit exceeds.
    level : float or None
    total : float
        The weight of all rows.

    Examples
    --------
    >>> y, p = [0, 0, 1, 0, 1, 1] * 50, [0.1, 0.3, 0.4, 0.6, 0.7, 0.8] * 50
    >>> print(decision_curve(y, p, thresholds=[0.2, 0.5, 0.8], level=None))
    threshold  predictions  treat all  treat none
    0.2             0.4167     0.3750           0
    0.5             0.1667     0.0000           0
    0.8             0.1667    −1.5000           0
    """

    names: tuple[str, ...]
    thresholds: Array
    net_benefit: Array
    lower: Array | None
    upper: Array | None
    acted: Array
    treat_all: Array
    rate: float
    level: float | None
    total: float

    def __repr__(self) -> str:
        band = "no band" if self.level is None else f"{100 * self.level:g} % band"
        low, high = self.thresholds[0], self.thresholds[-1]
        return (
            f"DecisionCurve({', '.join(self.names)}; {len(self.thresholds)} thresholds from "
            f"{low:g} to {high:g}, weight {self.total:g}, {band})"
        )

    def __str__(self) -> str:
        many = len(self.thresholds)
        chosen = some_of(many, MOST_LINES)
        columns = [["threshold", *(f"{self.thresholds[at]:g}" for at in chosen)]]
        for number, name in enumerate(self.names):
            columns.append([name, *(shown_value(self.net_benefit[number, at]) for at in chosen)])
            if self.lower is not None and self.upper is not None and self.level is not None:
                ends = ((self.lower[number, at], self.upper[number, at]) for at in chosen)
                shown = (f"{shown_value(low)} to {shown_value(high)}" for low, high in ends)
                columns.append([f"{100 * self.level:g} % band", *shown])
        columns.append(["treat all", *(shown_value(self.treat_all[at]) for at in chosen)])
        columns.append(["treat none", *("0" for _ in chosen)])
        lines = printed_columns(columns)
        if len(chosen) < many:
            lines.append(f"({len(chosen)} of {many} thresholds)")
        return "\n".join(lines)


def decision_curve(
    y: Any,
    p: Any = None,
    *,
    thresholds: Any = None,
    level: float | None = 0.95,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
) -> DecisionCurve:
    """The net benefit of one or more models at each threshold: is acting on them of use?

    Larger is better. A model is of use at the thresholds where it is above both acting on every row
    (treat all) and acting on none (0).

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
        None where p is a dict of tables.
    p : array-like of shape (n,), (n, 1) or (n, 2), or dict of names to such
        Predicted probabilities of the positive class; several models of the same rows by name.
    thresholds : array-like of numbers in (0, 1), optional
        The probabilities from which on one might act; default: 0.01, 0.02, … up to the largest
        prediction, in steps of 0.001 if all are below 0.1, and so on. Choose them before you look:
        those at which somebody would act.
    level : float or None, default=0.95
        Confidence of the intervals at each threshold; None leaves them out.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How intervals read a weight: as how much a row matters, so that a common factor changes
        nothing, or as a number of equal rows (then it must be whole).
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Returns
    -------
    DecisionCurve
        `decision_diagram` draws it.

    Notes
    -----
    At a threshold t the net benefit is TP/n − FP/n · t/(1 − t) of acting where p ≥ t [1]_. Bands
    hold threshold by threshold, not everywhere at once, and each for its own model: how far two
    models of the same rows differ is known better than their bands suggest. O(D + m log D) for
    each model and m thresholds.

    References
    ----------
    .. [1] A. Vickers, E. Elkin, "Decision curve analysis: a novel method for evaluating prediction
       models", 2006, doi:10.1177/0272989X06295361.

    Examples
    --------
    >>> y, p = [0, 0, 1, 0, 1, 1] * 50, [0.1, 0.3, 0.4, 0.6, 0.7, 0.8] * 50
    >>> curve = decision_curve(y, {"model": p, "constant": [0.5] * 300}, thresholds=[0.2, 0.6])
    >>> curve.net_benefit.round(3).tolist()
    [[0.417, 0.083], [0.375, 0.0]]
    >>> curve
    DecisionCurve(model, constant; 2 thresholds from 0.2 to 0.6, weight 300, 95 % band)
    """
    if level is not None:
        check_number("level", level, 0.0, 1.0)
    places: Array | None = None
    if thresholds is not None:
        places = np.unique(read_number_column(np.atleast_1d(thresholds), "thresholds", signed=True))
        if not len(places) or places[0] <= 0.0 or places[-1] >= 1.0:
            ends = f"they run from {places[0]:g} to {places[-1]:g}" if len(places) else "none came"
            raise ParameterError(
                f"thresholds must be one or more numbers above 0 and below 1, but {ends}."
            )
    if isinstance(p, Mapping):
        tables = read_several(y, p, sample_weight, pos_label)
    else:
        tables = {ONLY: read_table(y, p, sample_weight, pos_label)}
    made = {name: table_for_test(table, weights) for name, table in tables.items()}
    if places is None:
        places = _usual_thresholds(max(float(table.scores[-1]) for table in made.values()))
    found = [benefits(table, places) for table in made.values()]
    first = next(iter(made.values()))
    rate = first.total_positive / first.total
    lower = upper = None
    spans = [] if level is None else [one.intervals(level) for one in found]
    if spans and all(spans):  # not of fewer than two rows
        lower, upper = np.moveaxis(np.array(spans), -1, 0)
    return DecisionCurve(
        tuple(made),
        places,
        np.array([one.mean for one in found]),
        lower,
        upper,
        np.array([one.acted for one in found]),
        treat_all(rate, places),
        rate,
        None if lower is None else level,
        next(iter(tables.values())).total,
    )


def _usual_thresholds(largest: float) -> Array:
    """Round thresholds from near 0 to the largest prediction, beyond which nobody is acted upon.

    >>> _usual_thresholds(0.0342)[[0, 1, -1]].tolist(), _usual_thresholds(1.0)[[0, 1, -1]].tolist()
    ([0.001, 0.002, 0.035], [0.01, 0.02, 0.99])
    """
    parts = 100
    while parts < FINEST and 0.0 < largest * parts <= 10.0:
        parts *= 10
    last = min(max(math.ceil(largest * parts - 1e-9), 1), parts - 1)
    return np.arange(1, last + 1) / parts
