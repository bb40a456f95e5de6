"""What probabilities earn when acted upon: profit, and net benefit in positives found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from calibrant.array_types import Array, Flags, Index
from calibrant.data.columns import column_names, reorder_columns, to_column
from calibrant.data.door import (
    check_lengths,
    check_word,
    read_labels,
    read_number_column,
    read_weight,
)
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError, ParameterError
from calibrant.metrics.chance import (
    LOSSES,
    Moments,
    RowWeights,
    Span,
    cubed_weights,
    mean_interval,
)
from calibrant.metrics.point_measures import losses_of_rows
from calibrant.metrics.tables import (
    check_counts,
    check_number,
    check_weights,
    has_several,
    read_classes,
    read_column,
    read_rows,
    read_table,
    table_for_test,
)
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
    gain, loss = _read_amount(benefit, "benefit"), _read_amount(cost, "cost")
    if not gain.ndim and not loss.ndim:
        table = read_table(y, p, sample_weight, pos_label)
        acts = table.scores * gain > loss
        return _profit(acts, table.positive, table.negative, gain, loss)
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
    return _profit(rows.scores * gain > loss, positive, weight - positive, gain, loss)


def _profit(acts: Flags, positive: Array, negative: Array, gain: Array, loss: Array) -> Profit:
    """The profit of acting where ``acts`` says so, beside that of acting on all and of knowing the
    labels."""
    on_positive, on_negative = (gain - loss) * positive, -loss * negative
    each = on_positive + on_negative
    best = np.maximum(on_positive, 0.0) + np.maximum(on_negative, 0.0)
    return Profit(
        float(each[acts].sum()),
        float(best.sum()),
        float(each.sum()),
        float((positive + negative)[acts].sum()),
    )


def _read_amount(value: Any, name: str) -> Array:
    """A benefit or a cost: one finite number, or one for each row."""
    if value is None:
        raise ParameterError(f"{name} must be given: a number, or one per row.")
    if np.ndim(value) == 0:
        return read_number_column([value], name, signed=True).reshape(())
    return read_number_column(value, name, signed=True)


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
    """True positives less false alarms at the price that the threshold sets, for each row.

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
    """The net benefit at each threshold, the share of rows acted upon, and sums for intervals.

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
        """Student's interval of each net benefit; empty for fewer than two rows."""
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
    """The net benefit of a table at m thresholds. O(D + m log D).

    A row brings 1, −t/(1 − t) or 0. So all sums over rows are sums over those above a threshold,
    which one pass from the largest prediction down gives for all thresholds.
    """
    first = np.searchsorted(table.scores, thresholds, side="left")

    def above(column: Array) -> Array:
        return np.append(np.cumsum(column[::-1])[::-1], 0.0)[first]

    n0, n1, q0, q1 = table.columns
    total, odds = table.total, thresholds / (1.0 - thresholds)
    upper0, upper1 = above(n0), above(n1)
    mean = (upper1 - upper0 * odds) / total
    seen = []
    for power, (c0, c1) in ((2, (q0, q1)), (3, (cubed_weights(n0, q0), cubed_weights(n1, q1)))):
        s0, s1 = above(c0), above(c1)
        rest = np.maximum(float((c0 + c1).sum()) - s0 - s1, 0.0)
        brought = s1 * (1.0 - mean) ** power + s0 * (-odds - mean) ** power
        seen.append(brought + rest * (-mean) ** power)
    p, q = table.scores, q0 + q1
    chance = p * (1.0 - p)
    expected = (
        above(q * chance) * (1.0 + odds) ** 2,
        above(cubed_weights(n0 + n1, q) * chance * (1.0 - 2.0 * p)) * (1.0 + odds) ** 3,
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


# --- A test of the difference between the losses of two predictions of the same rows --------------


#: with fewer (effective) rows of a class the t distribution is not to be trusted
FEWEST = 10.0


@dataclass(frozen=True, repr=False)
class LossDifference(Readable):
    """The result of `loss_difference`.

    Attributes
    ----------
    difference : float
        Mean loss of p minus mean loss of q: above 0, q is better. Infinite where only one of the
        two losses is; NaN where both are.
    low, high : float
        Ends of the confidence interval.
    p_value : float
        The chance of at least this |difference| if both have the same expected loss.
    std_error : float
        Standard error of the difference.
    df : float
        Degrees of freedom of the t distribution behind interval and p-value.
    first, second : float
        Mean loss of p and of q.
    loss : str
        Which loss.
    level : float
        Level of the interval.
    note : str
        What kept the losses from being finite, or why not to trust interval and p-value; else
        nothing.
    """

    difference: float
    low: float
    high: float
    p_value: float
    std_error: float
    df: float
    first: float
    second: float
    loss: str
    level: float
    note: str


def loss_difference(
    y: Any,
    p: Any,
    q: Any,
    *,
    loss: str = "log",
    level: float = 0.95,
    clip: float | None = None,
    groups: Any = None,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
    classes: Any = None,
) -> LossDifference:
    """The loss of p minus that of q on the same rows, with its interval and a test.

    Above 0: q is better. A small p-value: the difference is more than chance.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels. (No table: it would no longer know which predictions belong together.)
    p, q : array-like of shape (n,), (n, 1), (n, 2) or (n, k)
        Two predictions of the same rows: probabilities of the positive class, a binary
        predict_proba, or one column for each of k ≥ 3 classes in sorted order.
    loss : {"log", "brier"}, default="log"
        −ln P(what happened), or (y − p)²; for k ≥ 3 classes Σ_j (y_j − p_j)².
    level : float, default=0.95
    clip : float, optional
        For the log loss: clip probabilities to [clip, 1 − clip] first, so that it is finite.
    groups : array-like of shape (n,), optional
        Rows of one group (a patient, a day) are not independent of each other: the standard error
        is then of groups, not rows.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How to read a weight: as how much a row matters, so that a common factor changes nothing,
        or as a number of equal rows (then it must be whole). With groups both give the same.
    pos_label : label, optional
        What p and q are probabilities of; default: the larger of the two labels. Not with (n, k).
    classes : array-like of labels, optional
        The class of each column, where y lacks some or the columns have another order.

    Raises
    ------
    InputError
        If there are not at least two rows (or groups) to tell chance from.

    Notes
    -----
    dᵢ = ℓ(yᵢ, pᵢ) − ℓ(yᵢ, qᵢ), difference d̄ = Σwd/Σw. Standard error: √(Σw(d − d̄)²/(W(W − 1))) for
    counts of sum W, √(m/(m − 1)·Σw²(d − d̄)²)/Σw with m = (Σw)²/Σw² for importance, and
    √(G/(G − 1)·Σ_g(Σ_{i∈g} wᵢ(dᵢ − d̄))²)/Σw for G groups. Interval and p-value are Student's, with
    W − 1, m − 1 or G − 1 degrees of freedom: the paired t-test, and without lags the test of
    Diebold and Mariano [1]_. Pairing matters: what makes a row hard for both cancels in dᵢ. O(n).
    Ties play no part.

    Infinite log losses are answered for what they are. An event that was given probability 0 and
    came has shown that this prediction's expected loss is infinite; so if that holds for one of the
    two only, difference, interval and p-value are ±∞, [±∞, ±∞] and 0. If it holds for both, there
    is no difference to speak of: NaN, [−∞, ∞] and 1. ``note`` counts the rows; pass ``clip``.

    It misleads if p or q was fitted to these rows (the one that fits more closely wins), if rows
    depend on each other and ``groups`` is not given, and where few rows with a huge log loss
    decide: the mean is then far from normal. With fewer than ten rows of a class (``note`` says so)
    interval and p-value may be far too sure: where no positive came, predictions that differ by a
    shift differ by the same loss in all rows, so that nothing varies. In simulations with one
    positive expected a third of such pairs of equal loss were found different at the 5 % level,
    with ten 6 to 7 %.

    References
    ----------
    .. [1] F. Diebold, R. Mariano, "Comparing predictive accuracy", 1995,
       doi:10.1080/07350015.1995.10524599.

    Examples
    --------
    >>> y = [0, 1, 1, 0, 1, 0]
    >>> timid, bold = [0.4, 0.6, 0.6, 0.4, 0.6, 0.4], [0.2, 0.9, 0.7, 0.1, 0.8, 0.3]
    >>> result = loss_difference(y, timid, bold, loss="brier")
    >>> round(result.difference, 4), result.p_value < 0.01
    (0.1133, True)
    >>> loss_difference([0, 1], [0.5, 0.0], [0.5, 0.5]).note
    'p gave probability 0 to what happened in 1 of 2 rows'
    """
    check_word("loss", loss, LOSSES)
    check_weights(weights)
    level = check_number("level", level, 0.0, 1.0)
    if clip is not None:
        clip = check_number("clip", clip, 0.0, 0.5)
        if loss != "log":
            raise ParameterError(f"clip is for the log loss only, but loss={loss!r} came with it.")
    if isinstance(y, (ScoreTable, ScoreMatrix)):
        raise InputError(
            "y must be labels: a table or matrix in its place does not know which rows of p and q "
            "belong together. Pass labels and both predictions."
        )
    (first, second), positive = _losses_of_both(y, p, q, loss, clip, pos_label, classes)
    weight = read_weight(sample_weight, len(first))
    if weight is None:
        weight = np.ones(len(first))
    kept = weight > 0.0
    codes = None if groups is None else _group_codes(groups, len(first))[kept]
    few = "" if positive is None else _few_rows_note(positive[kept], weight[kept], weights)
    first, second, weight = first[kept], second[kept], weight[kept]
    share = weight / weight.sum()
    means = float(share @ first), float(share @ second)
    never = tuple(int(np.isinf(column).sum()) for column in (first, second))
    apart = np.zeros(len(first)) if any(never) else first - second
    error, df = _error_of_mean(apart, weight, weights, codes)
    if any(never):
        answer = _INFINITE[bool(never[0]), bool(never[1])]
        note = "; ".join(
            f"{name} gave probability 0 to what happened in {count} of {len(weight)} rows"
            for name, count in zip("pq", never, strict=True)
            if count
        )
        return LossDifference(*answer, math.nan, df, *means, loss, level, note)
    mean = float(share @ apart)
    reach = float(stdtrit(df, (1.0 + level) / 2.0)) * error
    t = abs(mean) / error if error > 0.0 else (math.inf if mean else 0.0)
    p_value = min(1.0, 2.0 * float(stdtr(df, -t)))
    low, high = mean - reach, mean + reach
    return LossDifference(mean, low, high, p_value, error, df, *means, loss, level, few)


#: difference, low, high and p-value where the loss of (p, q) is infinite
_INFINITE = {
    (True, False): (math.inf, math.inf, math.inf, 0.0),
    (False, True): (-math.inf, -math.inf, -math.inf, 0.0),
    (True, True): (math.nan, -math.inf, math.inf, 1.0),
}


# --- the losses of each row ---------------------------------------------------------------------


def _losses_of_both(
    y: Any, p: Any, q: Any, loss: str, clip: float | None, pos_label: Any, classes: Any
) -> tuple[list[Array], Flags | None]:
    """The losses of p and of q for every row; and, of two classes, which rows are positive."""
    for name, given in (("p", p), ("q", q)):
        if given is None:
            raise InputError(f"{name} must be given: the predicted probabilities, one per row.")
    q = reorder_columns(q, column_names(p))
    several, p = has_several(y, p, pos_label)
    if several:
        both = ((p, "p"), (q, "q"))
        seen = (read_classes(y, m, classes=classes, name=name).matrix for m, name in both)
        return [losses_of_rows(matrix, loss, clip) for matrix in seen], None
    labels = read_labels(y, pos_label=pos_label, classes=classes)
    losses = []
    for name, given in (("p", p), ("q", q)):
        clean = read_column(given, labels, classes, name=name)
        if clip is not None:
            clean = np.clip(clean, clip, 1.0 - clip)
        of_negative, of_positive = LOSSES[loss](clean)
        losses.append(np.where(labels.positive, of_positive, of_negative) + 0.0)  # −0.0 is 0.0
    return losses, labels.positive


# --- how their mean varies ----------------------------------------------------------------------


def _error_of_mean(
    apart: Array, weight: Array, weights: str, codes: Index | None
) -> tuple[float, float]:
    """The standard error of the mean difference, and its degrees of freedom.

    The mean is over rows, or over groups of rows with equal codes.
    """
    if codes is None:
        check_counts(weight, weights)
        rows = RowWeights.of(weight, len(weight), weights)
        count, word = (weight.sum() if weights == "counts" else len(weight)), "rows"
    else:
        codes = np.unique(codes, return_inverse=True)[1]
        count, word = int(codes.max()) + 1, "groups"
    if count < 2:
        raise InputError(
            f"at least 2 {word} are needed to tell a difference from chance, but {count:g} came."
        )
    if codes is not None:
        share = weight / weight.sum()
        sums = np.bincount(codes, share * (apart - float(share @ apart)))
        return math.sqrt(count / (count - 1.0) * (sums @ sums)), count - 1.0
    if rows.size <= 1.0 + 1e-9:
        raise InputError("one row has all of the weight: nothing tells chance from difference.")
    return rows.error(apart), rows.size - 1.0


def _group_codes(groups: Any, n: int) -> Index:
    """The number of each row's group, from 0 on."""
    column = to_column(groups, "groups")
    check_lengths(y=n, groups=len(column))
    if column.ndim != 1 or (column.dtype.kind == "f" and np.isnan(column).any()):
        raise InputError("groups must be one column without missing values.")
    seen: dict[Any, int] = {}
    return np.fromiter((seen.setdefault(g, len(seen)) for g in column.tolist()), np.intp, n)


def _few_rows_note(positive: Flags, weight: Array, weights: str) -> str:
    """A note where fewer than ten rows of a class came; else nothing."""
    for word, w in (("positives", weight[positive]), ("negatives", weight[~positive])):
        size = RowWeights.of(w, len(w), weights).size if len(w) else 0.0
        if size < FEWEST - 1e-9:
            return f"{size:.3g} {word} are few: interval and p-value may be far too sure"
    return ""
