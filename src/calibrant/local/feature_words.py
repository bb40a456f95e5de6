"""What a `FeatureCalibrator` has to tell: of columns, of groups of rows, and of what was kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from calibrant.array_types import Array, Flags
from calibrant.data.score_kinds import kind_between
from calibrant.estimators.named_methods import BEFORE
from calibrant.local.attributes import Attribute, Schema
from calibrant.local.feature_judging import FEATURES, FeatureTrial
from calibrant.local.local_gate import SMOOTH
from calibrant.local.tree_growth import TrainingMatrix
from calibrant.result_tables import rows_in_words, shown_loss

if TYPE_CHECKING:
    from calibrant.local.feature_calibrator import FeatureCalibrator

#: a column that alone puts this share of pairs of rows in order may hold the label
LEAK = 0.99
#: the most rows that are looked at, and the fewest rows of a class for a verdict
MOST_ROWS, FEWEST = 50_000, 50
#: the most columns, groups of a column and groups that are kept; the fewest rows of a group
MOST_COLUMNS, MOST_CATEGORIES, MOST_GROUPS, FEWEST_ROWS = 5, 20, 8, 50
#: how many columns and groups are named in words
NAMED = 3
_KEPT = {BEFORE: "the scores stay as they are", SMOOTH: "a smooth curve of the score (BLS) is kept"}
_NAME_SHORT = {BEFORE: "scores", SMOOTH: "smooth curve", FEATURES: "with columns"}


# --- columns that cannot help, and columns that help too well to be true ------------------------


def check_columns(schema: Schema, rows: TrainingMatrix) -> tuple[str, ...]:
    """Notes on columns that hold a single value, and on columns that may hold the label."""
    notes = []
    same = [a.title for j, a in enumerate(schema.attributes) if _constant(rows.matrix[:, j])]
    if same:
        notes.append(f"These columns hold a single value and are left out: {', '.join(same)}.")
    step = -(-len(rows.matrix) // MOST_ROWS)
    some, hit = rows.matrix[::step], rows.positive[::step] == 1.0
    if min(int(hit.sum()), int((~hit).sum())) < FEWEST:
        return tuple(notes)
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
    return tuple(notes)


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


# --- groups of rows -----------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupChange:
    """A group of rows held out, and its probabilities before and after.

    Attributes
    ----------
    column : str
    group : str
        The category, the range of numbers, or "missing".
    weight : float
        The weight of its rows.
    rate : float
        The share of positives among them.
    before, after : float
        The mean probability of the scores as they came, and with the trees.
    gain : float
        By how much the trees lower the mean log loss of its rows.
    """

    column: str
    group: str
    weight: float
    rate: float
    before: float
    after: float
    gain: float


def changed_groups(
    trial: FeatureTrial, schema: Schema, rows: TrainingMatrix, columns: Iterable[str]
) -> tuple[GroupChange, ...]:
    """The groups that gain most in total, among those of the most important ``columns``.

    Only groups whose mean probability moves closer to their rate are told of.
    """
    weight, hit = trial.sample.weight, rows.positive[trial.held]
    before, after = trial.judged[BEFORE], trial.judged[FEATURES]
    titles = [a.title for a in schema.attributes]
    gain = np.minimum(before.log_loss, 100.0) - after.log_loss  # that of a wrong 0 or 1 is infinite
    found = []
    for name in [one for one in columns if one in titles][:MOST_COLUMNS]:
        j = titles.index(name)
        for group, inside in _groups(schema.attributes[j], rows.matrix[trial.held, j]):
            w = weight[inside]
            if int(inside.sum()) < FEWEST_ROWS or not w.sum() > 0:
                continue
            means = [
                float(w @ values[inside]) / float(w.sum())
                for values in (hit, before.p, after.p, gain)
            ]
            found.append(GroupChange(name, group, float(w.sum()), *means))
    better = [one for one in found if abs(one.after - one.rate) < abs(one.before - one.rate)]
    order = sorted(better, key=lambda one: -one.gain * one.weight)
    return tuple(order[:MOST_GROUPS])


def _groups(attribute: Attribute, values: Array) -> Iterator[tuple[str, Flags]]:
    """The groups that one column makes, and which rows are in each."""
    absent = np.isnan(values)
    if attribute.categories is not None:
        counts = np.bincount(values[~absent].astype(np.intp), minlength=len(attribute.categories))
        for code in np.argsort(-counts, kind="stable")[:MOST_CATEGORIES].tolist():
            yield str(attribute.categories[code]), values == code
        yield "missing", absent
        return
    yield "missing", absent
    if absent.all():
        return
    cuts = np.unique(np.quantile(values[~absent], (0.25, 0.5, 0.75)))
    for low, high in pairwise([-np.inf, *cuts.tolist(), np.inf]):
        yield _range(low, high), (values > low) & (values <= high)


def _range(low: float, high: float) -> str:
    if np.isinf(low):
        return f"up to {high:.4g}"
    return f"above {low:.4g}" if np.isinf(high) else f"{low:.4g} to {high:.4g}"


# --- in words -----------------------------------------------------------------------------------


def explain_features(fitted: FeatureCalibrator) -> str:
    """What was kept, by how much it helps, from which columns, for which groups."""
    parts = [_headline(fitted)]
    if fitted.kept_ == FEATURES:
        parts += [columns_in_words(fitted.importances_), groups_in_words(fitted.groups_)]
    return " ".join(part for part in (*parts, *fitted.notes_) if part)


def _headline(fitted: FeatureCalibrator) -> str:
    kept, trial, losses, gains = fitted.kept_, fitted.trial_, fitted.losses_, fitted.gains_
    if trial is None or losses is None or gains is None:
        if kept == FEATURES:
            return "The columns are used as told; nothing was held out to judge them on."
        if kept == SMOOTH:
            return (
                "A smooth curve of the score (BLS) is kept: the trees found nothing to split, as "
                "happens with fewer than 2·min_rows rows or one class. Nothing was held out."
            )
        unchanged = (
            "All rows get one rate" if _of_points(fitted) else "The scores are kept as they are"
        )
        return (
            f"{unchanged}: there are fewer than two rows of a class, so that nothing can be judged "
            "on rows that were not learned from."
        )
    where = f"On rows held out ({rows_in_words(trial.sample.total)})"
    figures = ", ".join(f"{_NAME_SHORT[n]} {shown_loss(loss)}" for n, loss in losses.items())
    if kept == FEATURES:
        rounds = f"{fitted.rounds_} round{'s' * (fitted.rounds_ != 1)} of trees"
        gain, low, high = gains[BEFORE]
        return (
            f"The columns help: the score is corrected by {rounds}. {where}, this gains "
            f"{shown_loss(gain)} in log loss over the scores as they are (95 % interval "
            f"{shown_loss(low)} to {shown_loss(high)}). Log loss: {figures}."
        )
    gain, low, high = gains[kept]
    told = _KEPT[kept]
    if kept == BEFORE and _of_points(fitted):
        told = "all rows get one rate, since the scores are points, which stand for no probability"
    return (
        f"The columns do not help beyond noise, so {told}. {where}, trees on the "
        f"columns would {'gain' if gain >= 0 else 'lose'} {shown_loss(abs(gain))} in log loss "
        f"(95 % interval of the gain {shown_loss(low)} to {shown_loss(high)}). They are used only "
        f"if they are ahead by more than two standard errors. Log loss: {figures}."
    )


def _of_points(fitted: FeatureCalibrator) -> bool:
    """Whether the scores stand for no probability, so that what is kept of them is one rate."""
    return kind_between(fitted.score_range_.low, fitted.score_range_.high) == "points"


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
