"""Rows → the columns of a score table: each distinct score once, with Σw and Σw² of classes."""

from __future__ import annotations

import numpy as np

from calibrant.array_types import Array, Flags, Index
from calibrant.data.frozen import own
from calibrant.data.validation import Rows

#: distinct ascending scores; Σw of the negatives and of the positives; Σw² of both
Columns = tuple[Array, Array, Array, Array, Array]


def columns_of_rows(rows: Rows) -> Columns:
    """The columns of rows that have come through the door. O(N log N)."""
    if rows.share is not None:
        return columns_of_shares(rows.scores, rows.share, rows.weight)
    if rows.weight is None:
        return _of_unweighted(rows.scores, rows.positive)
    return _of_weighted(rows.scores, rows.positive, rows.weight)


def columns_of_shares(scores: Array, share: Array, weight: Array | None) -> Columns:
    """Of soft labels: a row of share q and weight w gives w·q to the positives and w·(1 − q) to the
    negatives. It stays one row: w² is divided alike."""
    if weight is None:
        n0 = 1.0 - share
        return group_by_score(scores, (n0, share, n0, share))
    n0, n1 = weight * (1.0 - share), weight * share
    return group_by_score(scores, (n0, n1, weight * n0, weight * n1))


def _starts(x: Array) -> Index:
    """Where each run of equal values of the sorted x begins."""
    return np.flatnonzero(np.append(True, x[1:] != x[:-1])[: len(x)])


def _of_unweighted(scores: Array, positive: Flags) -> Columns:
    """Sort the classes apart (values only: cheaper than an argsort of all), then merge."""
    x = np.empty(len(scores))
    negatives = len(x) - int(np.count_nonzero(positive))
    x[:negatives], x[negatives:] = scores[~positive], scores[positive]
    x[:negatives].sort()
    x[negatives:].sort()
    order = np.argsort(x, kind="stable")  # two ascending runs: a linear merge
    x = x[order]
    n1 = (order >= negatives).astype(np.float64)
    del order
    starts = _starts(x)
    if len(starts) == len(x):  # all scores are different
        n0 = 1.0 - n1
    else:
        n1 = np.add.reduceat(n1, starts)
        n0 = np.diff(starts, append=len(x)) - n1
        x = x[starts]
    n0, n1 = own(n0), own(n1)
    return own(x), n0, n1, n0, n1


def _of_weighted(scores: Array, positive: Flags, weight: Array) -> Columns:
    present = weight > 0
    if not present.all():
        scores, positive, weight = scores[present], positive[present], weight[present]
    n1 = np.where(positive, weight, 0.0)
    n0 = weight - n1
    return group_by_score(scores, (n0, n1, n0 * n0, n1 * n1))


def group_by_score(scores: Array, columns: tuple[Array, ...]) -> Columns:
    """GROUP BY score: sums of each column over equal scores, weightless cells dropped."""
    order = np.argsort(scores, kind="stable")
    x = scores[order]
    starts = _starts(x)
    distinct = x[starts]
    shared = columns[0] is columns[2] and columns[1] is columns[3]
    sums = [
        np.add.reduceat(c[order], starts) if len(x) else c for c in columns[: 2 if shared else 4]
    ]
    present = (sums[0] + sums[1]) > 0
    if not present.all():
        distinct, sums = distinct[present], [s[present] for s in sums]
    n0, n1, q0, q1 = [own(s) for s in sums] * (2 if shared else 1)
    return own(distinct), n0, n1, q0, q1
