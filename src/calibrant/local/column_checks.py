"""Columns that cannot help, and columns that help too well to be true."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from calibrant.arrays import Array, Flags
from calibrant.local.attributes import Schema

#: a column that alone puts this share of pairs of rows in order may hold the label
LEAK = 0.99
#: the most rows that are looked at, and the fewest rows of a class for a verdict
MOST_ROWS, FEWEST = 50_000, 50


def check_columns(schema: Schema, matrix: Array, positive: Flags) -> list[str]:
    """Notes on columns that hold a single value, and on columns that may hold the label."""
    notes = []
    same = [a.title for j, a in enumerate(schema.attributes) if _constant(matrix[:, j])]
    if same:
        notes.append(f"These columns hold a single value and are left out: {', '.join(same)}.")
    step = -(-len(matrix) // MOST_ROWS)
    some, hit = matrix[::step], positive[::step]
    if min(int(hit.sum()), int((~hit).sum())) < FEWEST:
        return notes
    for j, attribute in enumerate(schema.attributes):
        if attribute.title in same:
            continue
        area = column_area(some[:, j], hit, nominal=attribute.nominal)
        if area > LEAK:
            notes.append(
                f"{attribute.title} alone tells the classes apart (AUC {area:.4f}). If it is known "
                "only after the label is, it leaks the label: leave it out. The gain would not be "
                "there for new rows."
            )
    return notes


def _constant(column: Array) -> bool:
    gone = np.isnan(column)
    if gone.all():
        return True
    first = column[np.argmin(gone)]
    return not gone.any() and bool((column == first).all())


def column_area(column: Array, positive: Flags, *, nominal: bool) -> float:
    """The share of pairs that a column puts in order, in the better of its two directions.

    Categories are ordered by their rates among half of the rows, and judged on the other half. So a
    column in which each row has a name of its own says nothing.
    """
    if nominal:
        codes = np.where(np.isnan(column), 0.0, column + 1.0).astype(np.intp)
        learn = np.zeros(len(codes), dtype=bool)
        for own in (positive, ~positive):
            learn[np.flatnonzero(own)[::2]] = True
        size = int(codes.max()) + 1
        total = np.bincount(codes[learn], minlength=size)
        hits = np.bincount(codes[learn & positive], minlength=size)
        rate = positive[learn].mean()
        values = ((hits + rate) / (total + 1.0))[codes[~learn]]
        return _area(values, positive[~learn])
    present = ~np.isnan(column)
    values = np.where(present, column, np.inf)
    area = _area(values, positive)
    return max(area, 1.0 - area)


def _area(values: Array, positive: Flags) -> float:
    """The area under the ROC curve: the share of pairs in order, ties counting half."""
    n1 = int(positive.sum())
    n0 = len(positive) - n1
    return float((rankdata(values)[positive].sum() - n1 * (n1 + 1) / 2) / (n0 * n1))
