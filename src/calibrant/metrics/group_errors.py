"""Where predictions are wrong: calibration over many groups of rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.array_types import Array, Flags
from calibrant.data.attribute_table import read_table as read_features
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows, check_lengths
from calibrant.data.weighing import weight_in_rows
from calibrant.errors import InputError, ParameterError
from calibrant.metrics.arguments import (
    check_flag,
    check_number,
    check_whole,
    read_generator,
    read_rows,
)
from calibrant.metrics.crossed_groups import (
    ALL_ROWS,
    MOST_CROSSED,
    Crossings,
    GroupRule,
    code_columns,
)
from calibrant.metrics.debiased import without_chance
from calibrant.metrics.group_results import GroupError, Multicalibration
from calibrant.metrics.redrawn_groups import (
    ROUNDING,
    GroupSums,
    RedrawnGroups,
    WeighedRows,
    redraw_groups,
    signed_root,
    sum_groups,
)
from calibrant.metrics.weighted_cells import check_counts, check_weights
from calibrant.other_words import in_our_words

#: fewer drawings give no interval at the usual levels
FEWEST_REPLICATES = 100
#: halvings of an interval when its ends are looked for
HALVINGS = 60


@in_our_words
def multicalibration(
    y: Any,
    p: Any,
    *,
    features: Any,
    crossings: bool = True,
    quantiles: int = 5,
    categories: int = 20,
    min_rows: int = 50,
    level: float = 0.95,
    replicates: int = 1000,
    random_state: Any = 0,
    sample_weight: Any = None,
    weights: str = "importance",
    pos_label: Any = None,
    classes: Any = None,
) -> Multicalibration:
    """Where is it wrong? Tests calibration in many groups of rows at once.

    A small p-value says that predictions are wrong in some group, by more than chance explains.
    ``largest`` and ``mean`` say how far groups are off: smaller is better, 0 is best.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels, any two values.
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities of the positive class, or a binary predict_proba.
    features : frame or array of shape (n, columns)
        Columns of the same rows, in memory: numbers, words, categories, booleans, with gaps.
    crossings : bool, default=True
        Whether each two columns are crossed, as in "age 61 to 90 & country = de". Columns are
        crossed with ranges of the prediction, too.
    quantiles : int, default=5
        Ranges of equal size that numbers of more than ten values, and the predictions, are cut
        into.
    categories : int, default=20
        Of more categories, the rarest are put together as one group.
    min_rows : int, default=50
        The smallest group that is looked at (effective rows, where there are weights). Categories
        of fewer rows are put together.
    level : float, default=0.95
        The confidence of all intervals together.
    replicates : int, default=1000
        How many times labels are redrawn from p (at least 100); a p-value is at least
        1/(replicates + 1).
    random_state : int, Generator or None, default=0
        The seed of the redrawing: the same seed, the same answer.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    weights : {"importance", "counts"}, default="importance"
        How to read a weight: as how much a row matters, so that a common factor changes nothing,
        or as a number of equal rows (then it must be whole).
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels.
    classes : array-like of two labels, optional
        Both labels, where y may lack one, or the columns of p have another order.

    Returns
    -------
    Multicalibration
        Frozen; prints as a table of the worst groups; ``groups`` has all, ``to_frame()`` as a
        frame.

    Notes
    -----
    Groups are all rows, the categories of each column, ranges of numbers, missing values, ranges
    of the prediction, and the crossings of each two of these (of more than 40 columns: with the
    prediction only). Labels play no part in making them. A crossing that has the same rows as one
    of its two groups is left out.

    The statistic of a group is the signed root of the deviance 2m·KL(observed ‖ predicted) [2]_,
    with m the number of equal rows whose share varies as Σwy does if yᵢ ~ Bernoulli(pᵢ). It is near
    normal also for rare events. Labels of all rows are redrawn y*ᵢ ~ Bernoulli(pᵢ), and the largest
    |statistic| of all groups, M*, noted each time. The adjusted p-value of a group is
    (1 + #{M* ≥ its own})/(R + 1) [3]_. So the chance that any group is named if predictions are
    right is at most 1 − level, for every n, whatever the groups have in common. An interval holds
    the shares that this deviance does not refuse at the same critical value, with m by the
    variance that the rows show where that is larger: it may hold 0 beside a p-value just below
    1 − level, and is approximate.

    Groups that are off beyond chance come first, the one with the largest sure error (the end of
    its interval next to 0) on top. An error in one group shows in many groups that overlap it.
    ``same_as`` names the clearer group that explains such a group: one of the two contains the
    other, and nothing beyond chance is left when the error of the clearer one is taken off, in
    proportion to the variance. Such groups come second, and are not printed.

    ``mean_debiased`` is made as `ece_test` makes it. Predictions are multicalibrated [1]_ if they
    are right on average in every group, also at each value of the prediction. Here this is tested
    at the precision of the ranges.

    Cost O(n·c²·R) additions for c columns, many at a time; memory O(n·c) bytes, and no matrix of
    rows and groups. 10⁶ rows of 20 columns and 1000 redrawings take about 20 seconds of one core.

    When it misleads: with much data every group is found wrong, by however little, so look at the
    differences. An interval for one group by itself would be narrower.

    References
    ----------
    .. [1] Ú. Hébert-Johnson, M. Kim, O. Reingold, G. Rothblum, "Multicalibration: calibration for
       the (computationally-identifiable) masses", 2018, arXiv:1711.08513.
    .. [2] P. McCullagh, J. Nelder, "Generalized linear models", 1989,
       doi:10.1007/978-1-4899-3242-6.
    .. [3] P. Westfall, S. Young, "Resampling-based multiple testing", 1993, ISBN 978-0-471-55761-6.

    Examples
    --------
    >>> import pandas
    >>> rng = np.random.default_rng(0)
    >>> country = rng.choice(["de", "fr", "it"], 3000)
    >>> p = rng.random(3000)
    >>> y = rng.random(3000) < np.where(country == "it", p**2, p)
    >>> frame = pandas.DataFrame({"country": country, "age": rng.integers(18, 90, 3000)})
    >>> print(multicalibration(y, p, features=frame))
    group          rows  predicted  observed  difference       95 % interval      p
    ────────────  ─────  ─────────  ────────  ──────────  ──────────────────  ─────
    country = it  1,043     0.4986    0.3308     −0.1679  −0.2069 to −0.1272  0.001
    15 of 69 groups are off beyond chance, at 95 % confidence for all together.
    14 of them only repeat what a clearer group shows.
    largest difference 0.2286 (by chance alone it would be about 0.0911); mean 0.0606 (0.0167)
    """
    if isinstance(y, ScoreTable):
        raise InputError(
            "features belong to rows, but a ScoreTable came, which has none. Pass labels y and "
            "probabilities p."
        )
    rule = GroupRule(check_flag("crossings", crossings), *_sizes(quantiles, categories, min_rows))
    rows = read_rows(y, p, sample_weight, pos_label, classes)
    return multicalibration_of_rows(rows, features, rule, level, replicates, random_state, weights)


def _sizes(quantiles: Any, categories: Any, min_rows: Any) -> tuple[int, int, int]:
    most = {"quantiles": quantiles, "categories": categories}
    for name, value in most.items():
        if check_whole(name, value, 2) > 200:
            raise ParameterError(f"{name} must be at most 200, but {value} came.")
    return int(quantiles), int(categories), check_whole("min_rows", min_rows, 1)


def multicalibration_of_rows(
    rows: Rows,
    features: Any,
    rule: GroupRule | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    random_state: Any = 0,
    weights: str = "importance",
) -> Multicalibration:
    """`multicalibration` of rows that were read already; their scores are the predictions."""
    rule = rule or GroupRule()
    level = check_number("level", level, 0.0, 1.0)
    replicates = check_whole("replicates", replicates, FEWEST_REPLICATES)
    random = read_generator(random_state)
    check_weights(weights)
    table = read_features(features)
    check_lengths(y=len(rows.scores), features=len(table))
    if rows.weight is not None and not rows.weight.all():
        there = rows.weight > 0.0
        rows, table = rows.take(there), table.take(there)
    weighed = _weighed(rows, weights)
    columns, notes = code_columns(table, rows.scores, rows.positive, rule)
    crossings = Crossings(columns, rule)
    if crossings.wide:
        notes.append(
            f"more than {MOST_CROSSED} columns came: they were crossed with the prediction only"
        )
    notes += _impossible(rows)
    cells = sum_groups(weighed, crossings)
    kept = crossings.keep(_large_enough(cells, rule), cells.rows)
    sums = cells.take(kept)
    drawn = redraw_groups(weighed, crossings, sums, replicates, random)
    return _result(crossings.parts(kept), sums, drawn, rows, level, notes)


def _weighed(rows: Rows, weights: str) -> WeighedRows:
    check_counts(rows.weight, weights)
    weight = weight_in_rows(rows.weight, weights)
    counts = weights == "counts" and weight is not None
    return WeighedRows(rows.scores, rows.positive, weight, counts)


def _impossible(rows: Rows) -> list[str]:
    never = int((rows.positive & (rows.scores == 0.0)).sum())
    always = int((~rows.positive & (rows.scores == 1.0)).sum())
    words = ((never, "happened that had the probability 0"), (always, "did not happen that had 1"))
    return [f"{count:,} rows {said}" for count, said in words if count]


def _large_enough(cells: GroupSums, rule: GroupRule) -> Flags:
    enough = (cells.size >= rule.min_rows * (1.0 - 1e-9)) & (cells.weight > 0.0)
    enough[0] = True  # all rows
    return enough


# --- the result -----------------------------------------------------------------------------------


def _result(
    parts: list[tuple[str, ...]],
    sums: GroupSums,
    drawn: RedrawnGroups,
    rows: Rows,
    level: float,
    notes: list[str],
) -> Multicalibration:
    replicates = len(drawn.statistic)
    statistic = _statistic(sums)
    null = np.sort(drawn.statistic)
    above = replicates - np.searchsorted(null, np.abs(statistic) * (1.0 - ROUNDING), side="left")
    p_values = np.where(np.isinf(statistic), 0.0, (1.0 + above) / (1.0 + replicates))
    last = int(np.ceil(level * (replicates + 1))) - 1
    critical = float(null[last]) if last < replicates else np.inf
    low, high = _interval(sums, critical)
    clearest = np.argsort(-np.abs(statistic), kind="stable")
    wrong = p_values <= 1.0 - level + 1e-12
    same = _same_as(parts, sums, clearest[wrong[clearest]].tolist(), critical)
    total = len(rows.scores) if rows.weight is None else float(rows.weight.sum())
    unit = total / sums.weight[0]  # weights as they came, not in units of rows
    gap = sums.observed - sums.predicted
    groups = [
        GroupError(
            _name(parts[g]),
            int(sums.rows[g]),
            float(sums.weight[g] * unit),
            float(sums.predicted[g]),
            float(sums.observed[g]),
            float(gap[g]),
            float(low[g]),
            float(high[g]),
            float(p_values[g]),
            bool(wrong[g]),
            None if g not in same else _name(parts[same[g]]),
        )
        for g in clearest.tolist()
    ]
    share = sums.weight / sums.weight.sum()
    mean = float(share @ np.abs(gap))
    return Multicalibration(
        groups=tuple(sorted(groups, key=_rank)),
        looked_at=len(groups),
        wrong=int(wrong.sum()),
        repeats=len(same),
        p_value=0.0 if _impossible(rows) else float(p_values.min()),
        largest=float(np.abs(gap).max()),
        largest_expected=float(drawn.largest.mean()),
        sure=max(one.sure for one in groups),
        mean=mean,
        mean_expected=float(share @ drawn.mean),
        mean_debiased=without_chance(mean, share * np.abs(gap), share * drawn.mean),
        level=level,
        replicates=replicates,
        notes=tuple(notes),
    )


def _rank(one: GroupError) -> tuple[bool, bool, float]:
    """Groups that are off and say something of their own, those that repeat others, the rest."""
    return not one.wrong, one.same_as is not None, -one.sure


def _name(parts: tuple[str, ...]) -> str:
    return " & ".join(parts) or ALL_ROWS


def _statistic(sums: GroupSums) -> Array:
    """The signed root of each group; infinite where chance has no part and something is off."""
    root = signed_root(np.clip(sums.observed, 0.0, 1.0), sums.predicted, sums.trials)
    gap = sums.observed - sums.predicted
    off = np.where(np.abs(gap) > 1e-12, np.copysign(np.inf, gap), 0.0)
    return np.where(sums.chance > 0.0, root, off)


def _interval(sums: GroupSums, critical: float) -> tuple[Array, Array]:
    """The differences from the prediction that are not refused: both ends by halving."""
    share, trials = np.clip(sums.observed, 0.0, 1.0), sums.safe_trials
    ends = []
    for far in (0.0, 1.0):
        outside, inside = np.full(len(share), far), share.copy()
        for _ in range(HALVINGS):
            middle = 0.5 * (outside + inside)
            refused = np.abs(signed_root(share, middle, trials)) > critical
            outside, inside = np.where(refused, middle, outside), np.where(refused, inside, middle)
        ends.append(outside - sums.predicted)
    return ends[0], ends[1]


def _same_as(
    parts: Sequence[tuple[str, ...]], sums: GroupSums, clearest: Sequence[int], critical: float
) -> dict[int, int]:
    """Groups that only repeat a clearer one which contains them, or lies in them.

    What is wrong in a larger group is expected in its parts in proportion to their variance.
    """
    gap, chance = sums.events - sums.expected, sums.chance
    seen: dict[tuple[str, ...], int] = {}
    within: dict[tuple[str, ...], list[int]] = {}
    found: dict[int, int] = {}
    for g in clearest:
        mine = parts[g]
        above = {(), *((one,) for one in mine)} - {mine}
        larger = [seen[one] for one in sorted(above) if one in seen]
        nested = [(one, True) for one in larger] + [(one, False) for one in within.get(mine, ())]
        for other, contains in nested:
            ratio = chance[g] / chance[other] if contains and chance[other] > 0.0 else 1.0
            left = gap[g] - ratio * gap[other]
            variance = chance[g] * (1.0 - ratio) if contains else chance[g] - chance[other]
            if abs(left) <= critical * np.sqrt(max(variance, 0.0)):
                found[g] = found.get(other, other)
                break
        seen[mine] = g
        for one in above:
            within.setdefault(one, []).append(g)
    return found
