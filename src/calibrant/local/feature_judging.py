"""Whether the columns of rows say more than their scores: judged on rows that were held out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant.arrays import Array, Flags, Index
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows
from calibrant.estimators.held_out_choice import choose
from calibrant.estimators.held_out_means import Sample
from calibrant.estimators.model_folds import ModelRows
from calibrant.estimators.named_methods import BEFORE
from calibrant.estimators.registry import calibrator_of
from calibrant.estimators.splits import RowSplits, split_present
from calibrant.local.base import LocalRows
from calibrant.local.lightgbm_trees import TreeOptions
from calibrant.local.tree_growth import Growth, HeldOutRounds, TrainingMatrix, rounds_held_out
from calibrant.losses import logit, sigmoid
from calibrant.maps import Map
from calibrant.metrics.combined_test import chance_that_right

#: what may be kept beside the scores as they came
FEATURES, SMOOTH = "features", "BLS"
#: with more rows than this, a single part of this size is held out
MANY_ROWS, HELD_PART = 200_000, 0.25
FOLDS = 5


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


@dataclass(frozen=True)
class FeatureTrial:
    """How rows held out were judged.

    Attributes
    ----------
    held : array of shape (m,)
        Which rows were held out, fold after fold.
    sample : Sample
        Their weights.
    judged : mapping of name to HeldOutP
    rounds : HeldOutRounds
    folds : int
    right : float or None
        The p-value of the test that the scores as they came are right.
    """

    held: Index
    sample: Sample
    judged: Mapping[str, HeldOutP]
    rounds: HeldOutRounds
    folds: int
    right: float | None = None

    def gain(self, before: str, after: str, level: float = 0.95) -> tuple[float, float, float]:
        """By how much ``after`` lowers the log loss of ``before``, with the interval."""
        difference = self.judged[before].log_loss - self.judged[after].log_loss
        mean = self.sample.mean(difference)
        return mean, *self.sample.interval(mean, self.sample.error(difference), level)


def table_of(rows: LocalRows, some: Index | None = None, *, in_rows: bool = False) -> ScoreTable:
    """The table of the rows, or of some of them, with weights as they came or in units of rows."""
    part = slice(None) if some is None else some
    given = (rows.weight if in_rows else rows.given)[part]
    weight = None if (given == 1.0).all() else given
    return ScoreTable.from_rows(
        Rows(rows.scores[part], rows.codes[part] == 1, weight, rows.classes, rows.pos_label)
    )


def map_of(name: str, table: ScoreTable, weights: str | None) -> Map:
    """The scores as they came, or a smooth curve, as a map."""
    made = calibrator_of(name)
    if name == SMOOTH:
        made.set_params(weights=weights)
    fitted: Map = made.fit_table(table).map_
    return fitted


def judge_features(
    rows: LocalRows,
    matrix: Array,
    nominal: list[int],
    options: TreeOptions,
    *,
    cv: Any,
    groups: Any,
    rounds: int | None,
    weights: str | None,
) -> FeatureTrial:
    """Fit the smooth curve and rounds of trees to the rows outside each fold; judge them on it."""
    splits = row_splits(rows, cv, groups, options.seed)
    whole = TrainingMatrix(matrix, (rows.codes == 1).astype(float), rows.weight, nominal)
    growths, curves = [], []
    for train, test in splits.pairs:
        curve = map_of(SMOOTH, table_of(rows, train), weights)
        rest, held = whole.take(train), whole.take(test).matrix
        rest.matrix[:, -1] = logit(curve(rows.scores[train]))
        curves.append(curve(rows.scores[test]))
        held[:, -1] = logit(curves[-1])
        growths.append(Growth(rest, options, held))
    held_rows = np.concatenate([test for _, test in splits.pairs])
    sample = held_out_sample(rows, splits, held_rows, weights)
    positive = rows.codes[held_rows] == 1
    found = rounds_held_out(
        growths,
        positive.astype(float),
        sample.weight,
        _parts([len(test) for _, test in splits.pairs], sample.cluster),
        rounds=rounds,
    )
    before = map_of(BEFORE, table_of(rows), weights)(rows.scores[held_rows])
    judged = {
        BEFORE: HeldOutP.of(before, positive),
        SMOOTH: HeldOutP.of(np.concatenate(curves), positive),
        FEATURES: HeldOutP.of(sigmoid(found.logits), positive),
    }
    right = chance_for_rows(before, positive, sample, weights)
    return FeatureTrial(held_rows, sample, judged, found, len(splits.pairs), right)


def held_out_sample(rows: LocalRows, splits: RowSplits, held: Index, weights: str | None) -> Sample:
    """The weights of rows held out, and which of them belong together."""
    weight = (splits.share * rows.given)[held]
    square = weight if weights == "counts" else weight * weight
    return Sample(weight, square, None if splits.cluster is None else splits.cluster[held])


def chance_for_rows(p: Array, positive: Flags, sample: Sample, weights: str | None) -> float | None:
    """The p-value of the test that these probabilities of rows held out are right."""
    one = np.array([0, 1])
    table = ScoreTable.from_rows(Rows(p, positive, sample.weight, one, 1))
    return chance_that_right(
        table, grouped=sample.cluster is not None, weights=weights or "importance"
    )


def row_splits(rows: LocalRows, cv: Any, groups: Any, seed: int) -> RowSplits:
    """Rows to learn from and rows to judge on; by default folds, or one part of many rows."""
    if cv is None:
        cv = HELD_PART if len(rows.codes) > MANY_ROWS else FOLDS
    data = ModelRows(rows.scores, rows.codes, rows.given, rows.classes, 1, "auto")
    return split_present(cv, data, rows.kept, groups, seed)


def _parts(sizes: list[int], cluster: Index | None) -> Index:
    """The part of each row: its fold, or one of two halves if there is a single fold.

    The number of rounds for a part is chosen by the other parts.
    """
    if len(sizes) > 1:
        return np.repeat(np.arange(len(sizes)), sizes)
    return (np.arange(sizes[0]) if cluster is None else cluster) % 2


def kept_of(trial: FeatureTrial) -> str:
    """What to keep: trees only if they are ahead of scores and curve by two standard errors.

    The curve, in turn, is kept only if the scores are found wrong, as `AutoCalibrator` does.
    """
    names = (BEFORE, SMOOTH, *((FEATURES,) if trial.rounds.best > 0 else ()))
    judged = {name: trial.judged[name] for name in names}
    demanding = {FEATURES} & set(judged)
    return choose(judged, trial.sample, right=trial.right, demanding=demanding)[0]
