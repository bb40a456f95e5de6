"""Whether a local calibrator says more than the scores: judged on rows that were held out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array, Flags, Index
from calibrant.data.door import Rows
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.fitting.base_rows import LocalRows
from calibrant.fitting.folds import FOLDS, Pair, split_present
from calibrant.fitting.held_out import CLASS_ERRORS, Sample, choose
from calibrant.fitting.model_scores import ModelRows
from calibrant.fitting.registry import BEFORE, calibrator_of
from calibrant.metrics.tests import chance_that_right
from calibrant.rules.base import Map
from calibrant.rules.softmax import Softmax

#: what may be kept beside the scores as they came: a smooth curve; of several classes one factor
SMOOTH, FACTOR = "BLS", "temperature"


class HeldOutP(NamedTuple):
    """Probabilities of rows held out, their log loss, and whether any is exactly 0 or 1."""

    p: Array
    log_loss: Array
    certain: bool

    @classmethod
    def of(cls, p: Array, positive: Flags) -> HeldOutP:
        with np.errstate(divide="ignore"):
            loss = -np.where(positive, np.log(p), np.log1p(-p))
        return cls(p, loss, bool(p.min() <= 0.0 or p.max() >= 1.0))


class JudgedSplits(NamedTuple):
    """Splits of the rows: ``pairs`` of rows to learn from and rows to judge on.

    ``held`` are all rows to judge on, fold after fold, and ``sample`` their weights.
    """

    pairs: list[Pair]
    held: Index
    sample: Sample

    @classmethod
    def of(cls, rows: LocalRows, cv: Any, groups: Any, seed: int) -> JudgedSplits:
        data = ModelRows(rows.scores, rows.codes, rows.given, rows.classes, 1, "auto")
        splits = split_present(cv, data, rows.kept, groups, seed)
        held = np.concatenate([test for _, test in splits.pairs])
        weight = (splits.share * rows.given)[held]
        square = weight if rows.weights == "counts" else weight * weight
        cluster = None if splits.cluster is None else splits.cluster[held]
        return cls(splits.pairs, held, Sample(weight, square, cluster))

    def chance_that_right(self, p: Array, rows: LocalRows) -> float | None:
        """The p-value of the test that these probabilities of the rows held out are right."""
        positive, labels = rows.positive[self.held], np.array([0, 1])
        table = ScoreTable.from_rows(Rows(p, positive, self.sample.weight, labels, 1))
        grouped = self.sample.cluster is not None
        return chance_that_right(table, grouped=grouped, weights=rows.weights or "importance")


def kept_of_three(
    rows: LocalRows, name: str, predict: Callable[[Index, Index], Array], groups: Any
) -> str:
    """What is kept: the local rule (its ``name``), a smooth curve of the score, or the score.

    ``predict`` fits the rule to some rows and gives the probabilities of others. They are judged by
    the Brier score, summed over several classes: a few rows of one class give a probability of
    exactly 0 or 1, whose log loss can be infinite. The rule is kept only if it is ahead of both by
    more than two standard errors. The curve of several classes is one temperature.
    """
    several = len(rows.classes) > 2
    if _too_few(rows, several):
        return BEFORE
    split = JudgedSplits.of(rows, FOLDS, groups, 0)
    smooth = FACTOR if several else SMOOTH

    def curve(train: Index, test: Index) -> Array:
        return score_map(smooth, rows, train)(rows.scores[test])

    found = {BEFORE: score_map(BEFORE, rows)(rows.scores[split.held])}
    for candidate, of in ((smooth, curve), (name, predict)):
        found[candidate] = np.concatenate([of(train, test) for train, test in split.pairs])
    true: Array = np.equal.outer(rows.codes[split.held], np.arange(len(rows.classes))).astype(float)
    true = true if several else true[:, 1]
    # the losses are squares, of which none is infinite
    judged = {
        n: HeldOutP(p, np.square(p - true).reshape(len(p), -1).sum(axis=1), certain=False)
        for n, p in found.items()
    }
    if several:
        return choose(judged, split.sample, errors=CLASS_ERRORS, demanding=(name,))[0]
    right = split.chance_that_right(found[BEFORE], rows)
    return choose(judged, split.sample, right=right, demanding=(name,))[0]


def _too_few(rows: LocalRows, several: bool) -> bool:
    counts = np.bincount(rows.codes, minlength=2)
    return bool(np.count_nonzero(counts >= FOLDS) < 2 if several else counts.min() < 2)


def score_map(name: str, rows: LocalRows, some: Index | None = None) -> Map:
    """A map of the scores alone, by the name of its method, fitted to all rows or some of them."""
    part = slice(None) if some is None else some
    one = calibrator_of(name)
    if len(rows.classes) == 2:
        if name == SMOOTH:
            one.set_params(weights=rows.weights)
        one.fit_table(table_of(rows, rows.given, part))
    else:
        matrix = ScoreMatrix(np.ascontiguousarray(rows.scores[part]), rows.codes[part])
        if name == BEFORE:
            return Softmax.unchanged(matrix.n_classes, matrix.kind())
        one.set_params(classes=list(range(matrix.n_classes)))
        one.fit(matrix.scores, matrix.codes, rows.given[part])
    fitted: Map = one.map_
    return fitted


def table_of(rows: LocalRows, weight: Array, some: Index | slice) -> ScoreTable:
    """The table of some of the rows, with these weights."""
    own = None if (weight[some] == 1.0).all() else weight[some]
    part = ScoreTable.from_rows(
        Rows(rows.scores[some], rows.positive[some], own, rows.classes, rows.pos_label)
    )
    return part.part_of(float(rows.scores.min()), float(rows.scores.max()))
