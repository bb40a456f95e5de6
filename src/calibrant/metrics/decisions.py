"""What the probabilities earn when acted upon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.arrays import Array, Flags
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows, check_lengths, read_counts
from calibrant.errors import InputError, ParameterError
from calibrant.metrics.arguments import read_rows, read_table


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
    return _by_row(read_rows(y, p, sample_weight, pos_label), gain, loss)


def _by_row(rows: Rows, gain: Array, loss: Array) -> Profit:
    n = len(rows.scores)
    for name, amount in (("benefit", gain), ("cost", loss)):
        if amount.ndim:
            check_lengths(**{"y": n, name: len(amount)})
    weight = np.ones(n) if rows.weight is None else rows.weight
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
