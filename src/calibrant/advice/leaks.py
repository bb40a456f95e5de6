"""Was the model trained on the rows that it is calibrated on?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from calibrant.advice.piece import Advice
from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.metrics.ranking import area, one_class

#: AUC must be ahead of that of held-out rows by more standard errors than this
FAR = 3.0
#: rows can only be recognised if this share of them are different
DIFFERENT = 0.9
#: a forest that drew more rows than this for all of its trees together is not looked at
MOST_DRAWN = 50_000_000


def better_than_held_out(table: ScoreTable, held_out: ScoreTable) -> Iterator[Advice]:
    """AUC on the calibration rows far above that on rows that were held out."""
    if one_class(table) or one_class(held_out):
        return
    here, there = area(table), area(held_out)
    error = math.hypot(auc_error(here, table), auc_error(there, held_out))
    if here - there > FAR * error:
        yield Advice(
            "trained_on_these_rows",
            f"AUC is {here:.4f} on the calibration rows, but {there:.4f} on the held-out ones, "
            f"{(here - there) / error:.1f} standard errors less: the model has probably seen the "
            "former. Calibrate on rows that it was not trained on.",
            {"auc": here, "held_out": there, "error": error},
        )


def auc_error(auc: float, table: ScoreTable) -> float:
    """The standard error of an AUC (Hanley and McNeil 1982)."""
    columns = ((table.negative, table.negative_sq), (table.positive, table.positive_sq))
    zero, one = (float(w.sum()) ** 2 / float(q.sum()) for w, q in columns)
    above, below = auc / (2.0 - auc), 2.0 * auc**2 / (1.0 + auc)
    spread = (one - 1.0) * (above - auc**2) + (zero - 1.0) * (below - auc**2)
    # an AUC of exactly one has no spread: at least that of half a pair out of order
    least = 0.5 / (one * zero)
    return math.sqrt(max(auc * (1.0 - auc) + max(spread, 0.0), least) / (one * zero))


def trained_on(model: Any, X: Any) -> str:
    """What in a fitted model shows that it was trained on exactly these rows; "" if nothing does.

    This can be seen only in models that keep something of their rows: nearest neighbours, support
    vectors, trees (the rows in each leaf), Gaussian naive Bayes and scalers (means and counts).

    >>> from sklearn.naive_bayes import GaussianNB
    >>> X = [[0.0], [1.0], [5.0], [7.0]]
    >>> trained_on(GaussianNB().fit(X, [0, 0, 1, 1]), X)
    'its means are those of these rows'
    >>> trained_on(GaussianNB().fit(X, [0, 0, 1, 1]), [[3.0]])
    ''
    """
    steps = getattr(model, "steps", None)
    try:
        if steps is not None:
            return _in_pipeline([step for _, step in steps], X)
        return _told_by(model, np.asarray(X, dtype=np.float64))
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        return ""  # rows or a model of another kind: nothing can be told


def known_rows(model: Any, X: Any) -> Iterator[Advice]:
    """A fitted model that is to be calibrated on the rows that it was trained on."""
    if said := trained_on(model, X):
        yield Advice(
            "trained_on_these_rows",
            f"{type(model).__name__} was trained on the rows that it is to be calibrated on "
            f"({said}): its scores there are better than on new rows, and so the probabilities "
            "will be too sure. Pass other rows, or an unfitted model and cv=5.",
        )


def _in_pipeline(steps: list[Any], X: Any) -> str:
    for step in steps[:-1]:
        if said := trained_on(step, X):
            return said
        if step not in (None, "passthrough"):
            X = step.transform(X)
    return trained_on(steps[-1], X)


def _told_by(model: Any, rows: Array) -> str:
    if rows.ndim != 2 or not len(rows):
        return ""
    for attribute, (check, words) in _SIGNS.items():
        kept = getattr(model, attribute, None)
        if kept is not None and check(kept, model, rows):
            return words
    return ""


def _holds_all(kept: Any, model: Any, rows: Array) -> bool:
    """Whether every row that the model keeps is one of these."""
    kept = np.asarray(kept, dtype=np.float64)
    if kept.ndim != 2 or kept.shape[1] != rows.shape[1] or len(kept) < 2:
        return False
    known = {row.tobytes() for row in np.ascontiguousarray(rows)}
    if len(known) < DIFFERENT * len(rows):
        return False  # rows of few values meet by chance
    return all(row.tobytes() in known for row in np.ascontiguousarray(kept))


def _same_means(kept: Any, model: Any, rows: Array) -> bool:
    counts = np.asarray(model.class_count_, dtype=np.float64)
    if counts.sum() != len(rows):
        return False
    return bool(np.allclose(counts @ kept / counts.sum(), rows.mean(axis=0), rtol=1e-9, atol=1e-12))


def _same_scale(kept: Any, model: Any, rows: Array) -> bool:
    if np.any(np.asarray(getattr(model, "n_samples_seen_", -1)) != len(rows)):
        return False
    return bool(np.allclose(kept, rows.mean(axis=0), rtol=1e-9, atol=1e-12))


def _same_leaves(kept: Any, model: Any, rows: Array) -> bool:
    """Whether the rows fill the leaves of the tree as those it was grown on."""
    if kept.n_node_samples[0] != len(rows) or kept.node_count < 3:
        return False
    filled = np.bincount(kept.apply(rows.astype(np.float32)), minlength=kept.node_count)
    leaves = kept.children_left == -1
    return bool((filled[leaves] == kept.n_node_samples[leaves]).all())


def _same_first_tree(kept: Any, model: Any, rows: Array) -> bool:
    first = np.asarray(kept, dtype=object).ravel()[0]
    tree = getattr(first, "tree_", None)
    if tree is None or getattr(model, "_n_samples", len(rows)) != len(rows):
        return False
    if hasattr(model, "estimators_samples_"):  # a forest: each tree has drawn some of the rows
        if len(rows) * len(model.estimators_) > MOST_DRAWN:
            return False
        rows = rows[np.unique(model.estimators_samples_[0])]
    return _same_leaves(tree, first, rows)


#: attributes that a fitted model may keep of its rows, how they are compared, and what is said
_SIGNS: dict[str, tuple[Callable[[Any, Any, Any], bool], str]] = {
    "support_vectors_": (_holds_all, "all its support vectors are among these rows"),
    "_fit_X": (_holds_all, "the rows that it remembers are these"),
    "theta_": (_same_means, "its means are those of these rows"),
    "mean_": (_same_scale, "its scaling was learned from exactly these rows"),
    "tree_": (_same_leaves, "these rows fill its leaves exactly as those it was grown on"),
    "estimators_": (_same_first_tree, "these rows fill its leaves exactly as its own"),
}
