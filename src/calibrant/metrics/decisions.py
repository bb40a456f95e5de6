"""What probabilities earn when acted upon: profit, and net benefit in positives found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array, Flags
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import check_lengths, read_counts
from calibrant.errors import InputError, ParameterError
from calibrant.metrics.arguments import check_number, read_rows, read_table
from calibrant.metrics.interval_formulas import Moments, Span, cubes, mean_interval
from calibrant.metrics.weighted_cells import class_columns, table_for_test
from calibrant.result_tables import Readable


@dataclass(frozen=True)
class Profit:
    """The result of `profit`.

    Attributes
    ----------
    profit : float
        Earned by acting where p · benefit > cost. Larger is better; at most ``optimum``.
    optimum : float
        Earned by someone who knows the labels.
    act_on_all : float
        Earned by acting on every row.
    acted : float
        The weight of the rows acted upon.
    """

    profit: float
    optimum: float
    act_on_all: float
    acted: float


def profit(
    y: Any,
    p: Any = None,
    *,
    benefit: Any = None,
    cost: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> Profit:
    """Profit of acting (mailing, treating, blocking) where the expected benefit exceeds the cost.

    Larger is better; at most the optimum, which is returned beside it.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    benefit, cost : float or array-like of shape (n,)
        What acting on a positive brings, and what acting on any row costs. One number for all rows
        or one per row; with a table only one number. Both are needed.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    Act where p · benefit > cost; profit = Σ w (benefit · y − cost) over the rows acted upon; the
    optimum acts where benefit · y > cost. O(D) after the table with numbers, O(n) with columns.
    It misleads away from the costs it was computed for: only p near cost/benefit matters.

    References
    ----------
    .. [1] B. Zadrozny, C. Elkan, "Transforming classifier scores into accurate multiclass
       probability estimates", 2002, doi:10.1145/775047.775151.

    Examples
    --------
    >>> profit([0, 1, 1, 0], [0.1, 0.2, 0.6, 0.7], benefit=10, cost=3)
    Profit(profit=4.0, optimum=14.0, act_on_all=8.0, acted=2.0)
    """
    gain, loss = _amount(benefit, "benefit"), _amount(cost, "cost")
    if not gain.ndim and not loss.ndim:
        table = read_table(y, p, sample_weight, pos_label)
        acts = table.scores * gain > loss
        return _result(acts, table.positive, table.negative, gain, loss)
    if isinstance(y, ScoreTable):
        raise InputError(
            "benefit and cost must be single numbers with a table, which no longer knows its rows, "
            "but a column came. Pass labels and probabilities instead."
        )
    rows = read_rows(y, p, sample_weight, pos_label)
    for name, amount in (("benefit", gain), ("cost", loss)):
        if amount.ndim:
            check_lengths(**{"y": len(rows.scores), name: len(amount)})
    weight = np.ones(len(rows.scores)) if rows.weight is None else rows.weight
    positive = np.where(rows.positive, weight, 0.0)
    return _result(rows.scores * gain > loss, positive, weight - positive, gain, loss)


def _result(acts: Flags, positive: Array, negative: Array, gain: Array, loss: Array) -> Profit:
    on_positive, on_negative = (gain - loss) * positive, -loss * negative
    each = on_positive + on_negative
    best = np.maximum(on_positive, 0.0) + np.maximum(on_negative, 0.0)
    return Profit(
        float(each[acts].sum()),
        float(best.sum()),
        float(each.sum()),
        float((positive + negative)[acts].sum()),
    )


def _amount(value: Any, name: str) -> Array:
    """A finite number, or a column of them."""
    if value is None:
        raise ParameterError(f"{name} must be given: a number, or one per row.")
    if np.ndim(value) == 0:
        return read_counts([value], name, signed=True).reshape(())
    return read_counts(value, name, signed=True)


# --- net benefit --------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class NetBenefit(Readable):
    """The result of `net_benefit`.

    Attributes
    ----------
    net_benefit : float
        What acting where p ≥ ``threshold`` is worth. Larger is better; at most the share of
        positives.
    interval : (float, float) or None
        None for a single row.
    treat_all : float
        The net benefit of acting on every row. That of acting on none is 0.
    acted : float
        The share of the weight that is acted upon.
    threshold : float
    """

    net_benefit: float
    interval: Span | None
    treat_all: float
    acted: float
    threshold: float


def net_benefit(
    y: Any,
    p: Any = None,
    *,
    threshold: float,
    level: float = 0.95,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
) -> NetBenefit:
    """Positives found for each row, less the false alarms at the price that the threshold sets.

    Larger is better; at most the share of positives. A model is of use at a threshold if it beats
    acting on every row (``treat_all``) and on none (0).

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then p is left out).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    threshold : float in (0, 1)
        The probability from which on you would act: at 0.1 a positive found is worth nine false
        alarms.
    level : float, default=0.95
        Confidence of the interval.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How to read a weight: as how much a row matters, so that a common factor changes nothing,
        or as a number of equal rows (then it must be whole).
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.

    Notes
    -----
    TP/n − FP/n · t/(1 − t), where TP and FP are the weights of positives and negatives with p ≥ t
    and n that of all rows [1]_. Rows of equal p are acted upon together. It is the mean over rows
    of 1, −t/(1 − t) or 0, so the interval is Student's for a mean, corrected for skewness, with the
    error that the predictions expect where that is larger, and ends where every row would bring
    that. O(D) after the table. It is the `profit`
    at benefit 1 and cost t, divided by n(1 − t), but for predictions of exactly t.

    References
    ----------
    .. [1] A. Vickers, E. Elkin, "Decision curve analysis: a novel method for evaluating prediction
       models", 2006, doi:10.1177/0272989X06295361.

    Examples
    --------
    >>> y, p = [0, 0, 1, 0, 1, 1] * 50, [0.1, 0.3, 0.4, 0.6, 0.7, 0.8] * 50
    >>> found = net_benefit(y, p, threshold=0.2)
    >>> round(found.net_benefit, 4), round(found.treat_all, 4), round(found.acted, 4)
    (0.4167, 0.375, 0.8333)
    """
    check_number("level", level, 0.0, 1.0)
    check_number("threshold", threshold, 0.0, 1.0)
    table = table_for_test(read_table(y, p, sample_weight, pos_label), weights)
    found = benefits(table, np.array([threshold]))
    spans = found.intervals(level)
    return NetBenefit(
        float(found.mean[0]),
        spans[0] if spans else None,
        float(treat_all(table.total_positive / table.total, found.thresholds)[0]),
        float(found.acted[0]),
        float(threshold),
    )


class Benefits(NamedTuple):
    """The net benefit at each threshold, the share acted upon, and how the benefit varies.

    ``seen`` and ``expected`` are Σw²(x − mean)² and Σw³(x − mean)³ of what each row brings: as the
    labels came, and as the predictions say.
    """

    thresholds: Array
    mean: Array
    acted: Array
    seen: tuple[Array, Array]
    expected: tuple[Array, Array]
    total: float
    size: float

    def intervals(self, level: float) -> list[Span]:
        """Student's intervals, corrected for skewness and cut to what a row can bring.

        The list is empty where there are fewer than two rows.
        """
        if self.size < 2.0 - 1e-9:
            return []
        spans = []
        for at, mean in enumerate(self.mean.tolist()):
            second, third = (float(part[at]) for part in self.seen)
            seen = second * (self.size / (self.size - 1.0)), third
            expected = float(self.expected[0][at]), float(self.expected[1][at])
            found = Moments.of(mean, seen, expected, self.total, self.size)
            low, high = mean_interval(found, level)
            odds = float(self.thresholds[at] / (1.0 - self.thresholds[at]))
            spans.append((max(min(low, mean), -odds), min(max(high, mean), 1.0)))
        return spans


def treat_all(rate: float, thresholds: Array) -> Array:
    """The net benefit of acting on every row."""
    return rate - (1.0 - rate) * thresholds / (1.0 - thresholds)


def benefits(table: ScoreTable, thresholds: Array) -> Benefits:
    """The net benefit of a table in units of rows. O(D + m log D) for m thresholds.

    A row brings 1, −t/(1 − t) or 0. So all sums over rows are sums over those above a threshold,
    which one pass from the largest prediction down gives for all thresholds.
    """
    first = np.searchsorted(table.scores, thresholds, side="left")

    def above(column: Array) -> Array:
        return np.append(np.cumsum(column[::-1])[::-1], 0.0)[first]

    n0, n1, q0, q1 = class_columns(table)
    total, odds = table.total, thresholds / (1.0 - thresholds)
    upper0, upper1 = above(n0), above(n1)
    mean = (upper1 - upper0 * odds) / total
    seen = []
    for power, (c0, c1) in ((2, (q0, q1)), (3, (cubes(n0, q0), cubes(n1, q1)))):
        s0, s1 = above(c0), above(c1)
        rest = np.maximum(float((c0 + c1).sum()) - s0 - s1, 0.0)
        brought = s1 * (1.0 - mean) ** power + s0 * (-odds - mean) ** power
        seen.append(brought + rest * (-mean) ** power)
    p, q = table.scores, q0 + q1
    chance = p * (1.0 - p)
    expected = (
        above(q * chance) * (1.0 + odds) ** 2,
        above(cubes(n0 + n1, q) * chance * (1.0 - 2.0 * p)) * (1.0 + odds) ** 3,
    )
    return Benefits(
        thresholds,
        mean,
        (upper0 + upper1) / total,
        (seen[0], seen[1]),
        expected,
        total,
        table.effective_size,
    )
