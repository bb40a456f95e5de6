"""What a `FeatureCalibrator` kept, and why, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from calibrant.estimators.named_methods import BEFORE
from calibrant.local.feature_groups import GroupChange
from calibrant.local.feature_judging import FEATURES, SMOOTH
from calibrant.result_tables import rows_in_words, shown_loss

#: how many columns and groups are named
NAMED = 3
_KEPT = {BEFORE: "the scores stay as they are", SMOOTH: "a smooth curve of the score (BLS) is kept"}


class FeatureFigures(NamedTuple):
    """The figures that are put into words."""

    kept: str
    rounds: int
    losses: Mapping[str, float] | None
    gains: Mapping[str, tuple[float, float, float]] | None
    importances: Mapping[str, float]
    groups: tuple[GroupChange, ...]
    notes: tuple[str, ...]
    weight: float | None


def explain_features(told: FeatureFigures) -> str:
    """What was kept, by how much it helps, from which columns, for which groups."""
    parts = [_headline(told)]
    if told.kept == FEATURES:
        parts += [columns_in_words(told.importances), groups_in_words(told.groups)]
    return " ".join(part for part in (*parts, *told.notes) if part)


def _headline(told: FeatureFigures) -> str:
    if told.losses is None or told.gains is None or told.weight is None:
        if told.kept == FEATURES:
            return "The columns are used as told; nothing was held out to judge them on."
        if told.kept == SMOOTH:
            return (
                "A smooth curve of the score (BLS) is kept: the trees found nothing to split, as "
                "happens with fewer than 2·min_rows rows or one class. Nothing was held out."
            )
        return (
            "The scores are kept as they are: there are fewer than two rows of a class, so that "
            "nothing can be judged on rows that were not learned from."
        )
    where = f"On rows held out ({rows_in_words(told.weight)})"
    figures = ", ".join(f"{_NAME_SHORT[n]} {shown_loss(loss)}" for n, loss in told.losses.items())
    if told.kept == FEATURES:
        rounds = f"{told.rounds} round{'s' * (told.rounds != 1)} of trees"
        gain, low, high = told.gains[BEFORE]
        return (
            f"The columns help: the score is corrected by {rounds}. {where}, this gains "
            f"{shown_loss(gain)} in log loss over the scores as they are (95 % interval "
            f"{shown_loss(low)} to {shown_loss(high)}). Log loss: {figures}."
        )
    gain, low, high = told.gains[told.kept]
    return (
        f"The columns do not help beyond noise, so {_KEPT[told.kept]}. {where}, trees on the "
        f"columns would {'gain' if gain >= 0 else 'lose'} {shown_loss(abs(gain))} in log loss "
        f"(95 % interval of the gain {shown_loss(low)} to {shown_loss(high)}). They are used only "
        f"if they are ahead by more than two standard errors. Log loss: {figures}."
    )


_NAME_SHORT = {BEFORE: "scores", SMOOTH: "smooth curve", FEATURES: "with columns"}


def columns_in_words(importances: Mapping[str, float]) -> str:
    """The columns from which the splits gain."""
    named = [(name, share) for name, share in importances.items() if share > 0.005]
    if not named:
        return ""
    told = ", ".join(f"{name} ({100 * share:.0f} %)" for name, share in named[:NAMED])
    rest = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    return f"The splits gain from {told}{rest}."


def groups_in_words(groups: tuple[GroupChange, ...]) -> str:
    """The groups whose probabilities change most."""
    if not groups:
        return ""
    told = "; ".join(
        f"{one.column} {_group(one)} ({rows_in_words(one.weight)}): scores said "
        f"{one.before:.3f}, {one.rate:.3f} happened, now {one.after:.3f}"
        for one in groups[:NAMED]
    )
    return f"It changes most for {told}."


def _group(one: GroupChange) -> str:
    ranged = one.group.startswith(("up to ", "above ")) or " to " in one.group
    return one.group if ranged or one.group == "missing" else f"= {one.group}"
