"""The gate: scores that nothing shows to be wrong are kept as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from calibrant.auto.explain import refusal
from calibrant.auto.leaderboard import Leaderboard
from calibrant.auto.scoring import CandidateTrial, standings
from calibrant.data.score_table import ScoreTable
from calibrant.estimators.held_out_choice import CLASS_ERRORS, ONE_SIDED, choose
from calibrant.estimators.held_out_means import Sample
from calibrant.estimators.named_methods import BEFORE
from calibrant.local.feature_judging import FEATURES


class Settled(NamedTuple):
    """What is taken, how all candidates did, and why the scores are kept if they are."""

    chosen: str
    leaderboard: Leaderboard
    refused: str | None


def told_certain(trial: CandidateTrial, whole: ScoreTable) -> CandidateTrial:
    """The trial, with exact 0 and 1 seen where they are among the probabilities of all rows."""
    certain = bool(whole.scores[0] <= 0.0 or whole.scores[-1] >= 1.0)
    return replace(trial, judged=trial.judged._replace(certain=certain))


def settle(
    trials: Mapping[str, CandidateTrial],
    sample: Sample,
    distinct: Mapping[str, int],
    p_value: float | None,
    *,
    folds: int,
    level: float,
    scores_are: str,
    notes: tuple[str, ...] = (),
    left_out: tuple[str, ...] = (),
) -> Settled:
    """Choose among the candidates, and say how they did.

    ``distinct`` are the numbers of different predictions, ``scores_are`` what the scores look like.
    """
    judged = {name: trial.judged for name, trial in trials.items()}
    errors = CLASS_ERRORS if scores_are == "distributions" else ONE_SIDED
    demanding = {FEATURES} & set(judged)
    chosen, tied = choose(judged, sample, right=p_value, errors=errors, demanding=demanding)
    seconds = {name: trial.seconds for name, trial in trials.items()}
    rows = standings(
        judged, sample, level=level, chosen=chosen, tied=tied, distinct=distinct, seconds=seconds
    )
    board = Leaderboard(rows, folds, level, sample.total, notes, left_out)
    return Settled(chosen, board, refusal(board, scores_are, p_value) if chosen == BEFORE else None)


def too_few(table: ScoreTable) -> str:
    """Why the scores are kept where a class has a single row."""
    rarer = "positives" if table.total_positive <= table.total_negative else "negatives"
    return (
        f"The scores are kept as they are: there are fewer than two {rarer}, so that nothing can "
        "be judged on rows that were not learned from."
    )
