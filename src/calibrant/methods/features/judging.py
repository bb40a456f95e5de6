"""Whether the columns of rows say more than their scores: judged on rows that were held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.door import Rows
from calibrant.fitting.held_out import HeldOutCells, Sample, Trial, choose
from calibrant.fitting.registry import BEFORE
from calibrant.losses import logit, sigmoid, softplus
from calibrant.methods.features.growth import Growth, TrainingMatrix, TreeOptions
from calibrant.methods.features.rule import MOST_ROUNDS
from calibrant.methods.gate import SMOOTH

#: what may be kept beside a smooth curve and the scores as they came
FEATURES = "features"
#: with more rows than this, a single part of this size is held out
MANY_ROWS, HELD_PART = 200_000, 0.25


@dataclass(frozen=True)
class HeldOutRounds:
    """The logits of rows held out after 0, 1, 2 … rounds, and which number of rounds is best.

    Attributes
    ----------
    losses : tuple of float
        The mean log loss after 0, 1, 2 … rounds.
    best : int
        The number of rounds with the least loss, or the number that was asked for.
    logits : array of shape (m,)
        The logit of each row, after the number of rounds that is best for the rows outside its
        part. So the choice does not flatter the result.
    """

    losses: tuple[float, ...]
    best: int
    logits: Array


@dataclass(frozen=True)
class FeatureTrial:
    """How rows held out were judged.

    Attributes
    ----------
    held : array of shape (m,)
        Which rows were held out, fold after fold.
    sample : Sample
        Their weights.
    judged : mapping of name to Trial
    rounds : HeldOutRounds
    folds : int
    right : float or None
        The p-value of the test that the scores as they came are right.
    """

    held: Index
    sample: Sample
    judged: Mapping[str, Trial]
    rounds: HeldOutRounds
    folds: int
    right: float | None = None

    def gain(self, before: str, after: str, level: float = 0.95) -> tuple[float, float, float]:
        """By how much ``after`` lowers the log loss of ``before``, with the interval."""
        difference = self.judged[before].log_loss - self.judged[after].log_loss
        mean = self.sample.mean(difference)
        return mean, *self.sample.interval(mean, self.sample.error(difference), level)

    @property
    def kept(self) -> str:
        """What to keep: trees only if they are ahead of scores and curve by two standard errors.

        The curve, in turn, is kept only if the scores are found wrong, as `AutoCalibrator` does.
        """
        judged = dict(self.judged)
        if not self.rounds.best:
            del judged[FEATURES]
        demanding = {FEATURES} & set(judged)
        return choose(judged, self.sample, right=self.right, demanding=demanding)[0]


def judge_features(
    rows: Rows,
    whole: TrainingMatrix,
    options: TreeOptions,
    held: HeldOutCells,
    trials: Mapping[str, Trial],
    *,
    right: float | None,
    rounds: int | None,
) -> FeatureTrial:
    """Add rounds of trees to the smooth curve of each fold, and judge them on what it holds out.

    ``trials`` are those of the scores and of the curve. ``right`` is as in `FeatureTrial`.
    """
    growths = []
    for (train, test), curve in zip(held.pairs, trials[SMOOTH].maps, strict=True):
        rest, asked = whole.take(train), whole.take(test).matrix
        rest.matrix[:, -1] = logit(curve(rows.scores[train]))
        asked[:, -1] = logit(curve(rows.scores[test]))
        growths.append(Growth(rest, options, asked))
    test = np.concatenate([test for _, test in held.pairs])
    found = rounds_held_out(
        growths,
        rows.positive[test].astype(float),
        held.sample.weight,
        _parts(held.sizes, held.cluster),
        rounds=rounds,
    )
    judged = {name: trials[name] for name in (BEFORE, SMOOTH)}
    judged[FEATURES] = held.trial(sigmoid(found.logits))
    kept = {name: replace(trial, map=None, fitted=None, maps=()) for name, trial in judged.items()}
    return FeatureTrial(test, held.sample, kept, found, held.folds, right)


def _parts(sizes: Sequence[int], cluster: Index | None) -> Index:
    """The part of each row: its fold, or one of two halves if there is a single fold.

    The number of rounds for a part is chosen by the other parts.
    """
    if len(sizes) > 1:
        return np.repeat(np.arange(len(sizes)), sizes)
    return (np.arange(sizes[0]) if cluster is None else cluster) % 2


def rounds_held_out(
    growths: list[Growth],
    positive: Array,
    weight: Array,
    part: Index,
    *,
    rounds: int | None = None,
    patience: int = 1,
) -> HeldOutRounds:
    """Grow rounds on the rows outside each fold until more no longer help on the rows held out.

    ``positive``, ``weight`` and ``part`` are those of the rows held out, fold after fold. If
    ``rounds`` is given, so many are grown, and nothing is chosen.
    """
    history: list[Array] = []
    losses: list[Array] = []
    means: list[float] = []
    most = MOST_ROUNDS if rounds is None else rounds
    while True:
        history.append(np.concatenate([one.held[:, -1] for one in growths if one.held is not None]))
        losses.append(softplus(history[-1]) - positive * history[-1])
        means.append(float(weight @ losses[-1]) / float(weight.sum()))
        best = len(means) - 1 if rounds is not None else int(np.argmin(means))
        if len(history) > most or len(means) - 1 - best > patience:
            break
        went_on = [one.go_on() for one in growths]
        if not any(went_on):
            break
    logits = np.empty(len(positive))
    for own in np.unique(part):
        inside = part == own
        chosen = best
        if rounds is None and not inside.all():
            chosen = int(np.argmin([weight[~inside] @ loss[~inside] for loss in losses]))
        logits[inside] = history[chosen][inside]
    return HeldOutRounds(tuple(means), best, logits)
