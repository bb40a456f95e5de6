"""Where predictions are wrong: calibration over many groups of rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from calibrant.array_types import Array, Flags
from calibrant.data.attributes import AttributeColumn, AttributeTable, title_of
from calibrant.data.attributes import read_attributes as read_features
from calibrant.data.door import Rows, check_lengths
from calibrant.data.frozen import Frozen
from calibrant.data.score_table import ScoreTable, weight_in_rows
from calibrant.data.segments import segment_titles
from calibrant.errors import InputError, ParameterError, refuse_foreign_names
from calibrant.metrics.binned_errors import without_chance
from calibrant.metrics.chance import batches
from calibrant.metrics.redraws import redrawn_rows
from calibrant.metrics.tables import (
    check_counts,
    check_flag,
    check_number,
    check_weights,
    check_whole,
    read_generator,
    read_rows,
)
from calibrant.result_tables import (
    PlainFields,
    PrintsAsTable,
    Readable,
    ResultTable,
    TableColumn,
    TableRow,
    format_count,
    frame_of,
    short_value,
    shown_p,
    shown_value,
)

#: fewer drawings give no interval at the usual levels
FEWEST_REPLICATES = 100
#: halvings of an interval when its ends are looked for
HALVINGS = 60


@refuse_foreign_names
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
    for name, most in (("quantiles", quantiles), ("categories", categories)):
        if check_whole(name, most, 2) > 200:
            raise ParameterError(f"{name} must be at most 200, but {most} came.")
    least = check_whole("min_rows", min_rows, 1)
    rule = GroupRule(check_flag("crossings", crossings), int(quantiles), int(categories), least)
    rows = read_rows(y, p, sample_weight, pos_label, classes)
    return multicalibration_of_rows(rows, features, rule, level, replicates, random_state, weights)


def multicalibration_of_rows(
    rows: Rows,
    features: Any,
    rule: GroupRule | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    random_state: Any = 0,
    weights: str = "importance",
) -> Multicalibration:
    """`multicalibration` of rows that were read already. Their scores are the predictions."""
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
    check_counts(rows.weight, weights)
    counted = weights == "counts" and rows.weight is not None
    weighed = replace(rows, weight=weight_in_rows(rows.weight, weights))
    columns, notes = code_columns(table, rows.scores, rows.positive, rule)
    crossings = Crossings(columns, rule)
    if crossings.wide:
        notes.append(
            f"more than {MOST_CROSSED} columns came: they were crossed with the prediction only"
        )
    notes += _impossible_notes(rows)
    cells = sum_groups(weighed, counted, crossings)
    enough = (cells.size >= rule.min_rows * (1.0 - 1e-9)) & (cells.weight > 0.0)
    enough[0] = True  # all rows
    kept = crossings.keep(enough, cells.rows)
    sums = cells.take(kept)
    draw = partial(redrawn_rows, weighed, counted, random)
    drawn = redraw_groups(draw, len(rows.scores), crossings, sums, replicates)
    return _test_of_groups(crossings.parts(kept), sums, drawn, rows, level, notes)


def _impossible_notes(rows: Rows) -> list[str]:
    """Notes on rows whose outcome had been given probability 0."""
    never = int((rows.positive & (rows.scores == 0.0)).sum())
    always = int((~rows.positive & (rows.scores == 1.0)).sum())
    words = ((never, "happened that had the probability 0"), (always, "did not happen that had 1"))
    return [f"{count:,} rows {said}" for count, said in words if count]


# --- the result -----------------------------------------------------------------------------------


def _test_of_groups(
    parts: list[tuple[str, ...]],
    sums: GroupSums,
    drawn: RedrawnGroups,
    rows: Rows,
    level: float,
    notes: list[str],
) -> Multicalibration:
    """The result: p-values, intervals and ranks of all groups, from their sums and redrawn
    labels."""
    replicates = len(drawn.statistic)
    gap, statistic = sums.observed - sums.predicted, sums.statistic
    null = np.sort(drawn.statistic)
    above = replicates - np.searchsorted(null, np.abs(statistic) * (1.0 - ROUNDING), side="left")
    p_values = np.where(np.isinf(statistic), 0.0, (1.0 + above) / (1.0 + replicates))
    last = int(np.ceil(level * (replicates + 1))) - 1
    critical = float(null[last]) if last < replicates else np.inf
    low, high = _difference_interval(sums, critical)
    clearest = np.argsort(-np.abs(statistic), kind="stable")
    wrong = p_values <= 1.0 - level + 1e-12
    same = _groups_that_repeat(parts, sums, clearest[wrong[clearest]].tolist(), critical)
    total = len(rows.scores) if rows.weight is None else float(rows.weight.sum())
    unit = total / sums.weight[0]  # weights as they came, not in units of rows
    groups = [
        GroupError(
            _group_name(parts[g]),
            int(sums.rows[g]),
            float(sums.weight[g] * unit),
            float(sums.predicted[g]),
            float(sums.observed[g]),
            float(gap[g]),
            float(low[g]),
            float(high[g]),
            float(p_values[g]),
            bool(wrong[g]),
            None if g not in same else _group_name(parts[same[g]]),
        )
        for g in clearest.tolist()
    ]
    # those that are off and say something of their own, those that repeat others, the rest
    groups.sort(key=lambda one: (not one.wrong, one.same_as is not None, -one.sure))
    share = sums.weight / sums.weight.sum()
    mean = float(share @ np.abs(gap))
    return Multicalibration(
        groups=tuple(groups),
        looked_at=len(groups),
        wrong=int(wrong.sum()),
        repeats=len(same),
        p_value=0.0 if _impossible_notes(rows) else float(p_values.min()),
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


def _group_name(parts: tuple[str, ...]) -> str:
    """The name of a group, such as "age 61 to 90 & country = de"."""
    return " & ".join(parts) or ALL_ROWS


def _difference_interval(sums: GroupSums, critical: float) -> tuple[Array, Array]:
    """The interval of each group's observed − predicted, both ends found by halving."""
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


def _groups_that_repeat(
    parts: Sequence[tuple[str, ...]], sums: GroupSums, clearest: Sequence[int], critical: float
) -> dict[int, int]:
    """Groups whose error is explained by a clearer group that contains them or lies in them: the
    number of that group by theirs.

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


# --- Groups of rows that overlap, as sums, and what redrawn labels make of them -------------------


#: rows that are looked at a time, and numbers that are held for all groups
BLOCK, HELD = 8192, 1 << 22
#: drawings at a time
MOST_DRAWN, FEWEST_DRAWN = 256, 16
#: equal values of the statistic may differ by this part from rounding
ROUNDING = 1e-6


@dataclass(frozen=True)
class GroupSums:
    """The sums over the rows of each group, in columns. Below, d = y − p.

    ``rows`` counts rows, ``weight`` is Σw, ``size`` the effective number of rows, ``expected`` Σwp,
    ``events`` Σwy, ``chance`` the variance of Σwy if predictions are right, ``spread`` the variance
    of Σwd as the rows show it.
    """

    rows: Array
    weight: Array
    size: Array
    expected: Array
    events: Array
    chance: Array
    spread: Array

    def take(self, which: Any) -> GroupSums:
        """The sums of some groups."""
        return GroupSums(*(getattr(self, field.name)[which] for field in fields(self)))

    @property
    def predicted(self) -> Array:
        return self.expected / self.weight

    @property
    def observed(self) -> Array:
        return self.events / self.weight

    @property
    def statistic(self) -> Array:
        """The signed root of each group's deviance.

        It is infinite where nothing is left to chance and the predictions are off.
        """
        gap = self.observed - self.predicted
        root = signed_root(np.clip(self.observed, 0.0, 1.0), self.predicted, self.trials)
        off = np.where(np.abs(gap) > 1e-12, np.copysign(np.inf, gap), 0.0)
        return np.where(self.chance > 0.0, root, off)

    @property
    def trials(self) -> Array:
        """How many equal rows of the mean prediction would vary as much by chance as the group
        does."""
        some, share = self.chance > 0.0, self.predicted
        variance = np.where(some, self.chance, 1.0)
        return np.where(some, self.weight**2 * (share * (1.0 - share)) / variance, self.size)

    @property
    def safe_trials(self) -> Array:
        """`trials`, or fewer where the rows vary more than the predictions say."""
        shown = np.where(
            self.spread > 0.0,
            self.weight**2
            * (self.observed * (1.0 - self.observed))
            / np.where(self.spread > 0.0, self.spread, 1.0),
            np.inf,
        )
        inner = (self.observed > 0.0) & (self.observed < 1.0)
        return np.minimum(self.trials, np.where(inner, shown, np.inf))


def sum_groups(rows: Rows, counted: bool, crossings: Crossings) -> GroupSums:
    """The sums of all cells of all crossings. O(n · crossings)."""
    p, y = rows.scores, rows.positive.astype(np.float64)
    w = np.ones(len(p)) if rows.weight is None else rows.weight
    square = w if counted else w * w
    gap = y - p
    columns = (np.ones(len(p)), w, square, w * p, w * y, square * (p * (1.0 - p)))
    values = np.column_stack((*columns, square * gap, square * gap**2))
    sums = np.zeros((len(crossings.place), values.shape[1]))
    for start in range(0, len(p), BLOCK):
        part = slice(start, start + BLOCK)
        crossings.sums(values[part], part, sums)
    count, weight, squares, expected, events, chance, first, second = sums.T.copy()
    mean = (events - expected) / np.where(weight > 0.0, weight, 1.0)
    spread = np.maximum(second - 2.0 * mean * first + mean**2 * squares, 0.0)
    size = weight**2 / np.where(squares > 0.0, squares, 1.0)
    return GroupSums(count, weight, size, expected, events, np.maximum(chance, 0.0), spread)


def signed_root(share: Array, expected: Array, trials: Array) -> Array:
    """The signed root of the deviance of an observed share: a z-score that also holds for rare
    events.

    >>> signed_root(np.array([0.0, 0.5]), np.array([0.1, 0.5]), np.array([10.0, 10.0])).round(3)
    array([-1.452,  0.   ])
    """
    divergence = rel_entr(share, expected) + rel_entr(1.0 - share, 1.0 - expected)
    size = np.sqrt(2.0 * trials * np.maximum(divergence, 0.0))
    return np.asarray(np.copysign(size, share - expected))


class RedrawnGroups(NamedTuple):
    """What redrawn labels make of groups: how large statistics and differences get by chance.

    For each drawing the largest ``statistic`` of a group and the ``largest`` |difference|; for each
    group its ``mean`` |difference|.
    """

    statistic: Array
    largest: Array
    mean: Array


def redraw_groups(
    draw: Callable[[slice, int], NDArray[Any]],
    rows: int,
    crossings: Crossings,
    sums: GroupSums,
    replicates: int,
) -> RedrawnGroups:
    """Redraw the labels of all rows many times, and sum them over all groups each time.

    ``draw`` gives w·y* of some rows, for so many drawings. Every drawing is one set of labels, so
    the groups depend on each other as in the data.
    O(n · crossings · replicates), in memory O(groups) for some drawings at a time.
    """
    groups = len(sums.weight)
    at_a_time = int(np.clip(HELD // groups, FEWEST_DRAWN, MOST_DRAWN))
    statistic, largest, mean = [], [], np.zeros(groups)
    expected, trials = sums.predicted[:, None], sums.trials[:, None]
    fixed = sums.chance <= 0.0
    for size in batches(replicates, at_a_time):
        events = np.zeros((groups, size))
        for start in range(0, rows, BLOCK):
            part = slice(start, start + BLOCK)
            drawn = draw(part, size)
            some = np.zeros((groups, size), dtype=drawn.dtype)
            crossings.sums(drawn, part, some)
            events += some
        share = np.clip(events / sums.weight[:, None], 0.0, 1.0)
        share[fixed] = expected[fixed]  # nothing is left to chance
        statistic.append(np.abs(signed_root(share, expected, trials)).max(axis=0))
        gap = np.abs(share - expected)
        largest.append(gap.max(axis=0))
        mean += gap.sum(axis=1)
    return RedrawnGroups(np.concatenate(statistic), np.concatenate(largest), mean / replicates)


# --------------------------------------------------------------------------------------------------
# Groups of rows from the columns of a frame: categories, ranges of numbers, and their crossings
#
# Labels play no part in how groups are made, so that a test over them keeps its level.


Codes = NDArray[np.uint8]
Index = NDArray[np.int64]

#: what the group of all rows, and the column of predictions, are called
ALL_ROWS, PREDICTION = "all rows", "prediction"
#: numbers of at most so many different values are taken as categories
FEW_VALUES = 10
#: with more columns, they are crossed with the predictions only, not with each other
MOST_CROSSED = 40
#: columns that a note names
NAMED = 5
#: digits of the ends of ranges, more where they do not tell ranges apart
DIGITS = (3, 4, 6, 9, 17)


class GroupRule(NamedTuple):
    """How groups are made; the options of `multicalibration`."""

    crossings: bool = True
    quantiles: int = 5
    categories: int = 20
    min_rows: int = 50


@dataclass(frozen=True)
class CodedColumn:
    """A column of groups: the number of each row's group, and a name for each number."""

    name: str
    codes: Codes
    words: tuple[str, ...]


def code_columns(
    table: AttributeTable, p: Array, positive: Flags, rule: GroupRule
) -> tuple[list[CodedColumn], list[str]]:
    """The columns that rows are grouped by: all rows, ranges of the prediction, and features. Notes
    say which were left out.

    O(n log n) for each column.
    """
    kept = [CodedColumn("", np.zeros(len(p), dtype=np.uint8), (ALL_ROWS,))]
    kept += [one for one in [_code_ranges(PREDICTION, p, rule)] if len(one.words) > 1]
    constant, leaks, again, pooled = [], [], [], []
    seen = {one.codes.tobytes() for one in kept}
    for label, column in zip(table.labels, table.columns, strict=True):
        coded, rare = _code_column(title_of(label), column, rule)
        if len(coded.words) < 2:
            constant.append(coded.name)
        elif _tells_label(coded, positive):
            leaks.append(coded.name)
        elif coded.codes.tobytes() in seen:
            again.append(coded.name)
        else:
            seen.add(coded.codes.tobytes())
            kept.append(coded)
            pooled += [f"{rare:,} of {coded.name}"] if rare else []
    said = (
        (constant, "left out, for their rows are all in one group: {}"),
        (leaks, "left out, for they tell the label exactly: {}. Is the label among the features?"),
        (again, "left out, for they have the groups of another column: {}"),
        (pooled, "rare values were put together as one group: {}"),
    )
    return kept, [words.format(_first_names(names)) for names, words in said if names]


def _first_names(names: Sequence[str]) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _tells_label(column: CodedColumn, positive: Flags) -> bool:
    """Whether a column gives the label away: each of its groups has one class only."""
    rows = np.bincount(column.codes)
    ones = np.bincount(column.codes, positive)
    return bool(((ones == 0) | (ones == rows)).all() and 0 < ones.sum() < rows.sum())


# --- one column -----------------------------------------------------------------------------------


def _code_column(name: str, column: AttributeColumn, rule: GroupRule) -> tuple[CodedColumn, int]:
    """A feature as groups, and how many of its values were too rare for a group of their own."""
    present = ~column.missing
    if not column.nominal:
        values = column.values[present].astype(np.float64)
        # a look at some of them first
        if any(len(np.unique(some)) > FEW_VALUES for some in (values[:1000], values)):
            return _with_missing(_code_ranges(name, values, rule), present), 0
    found, places = column.distinct()
    places = places[present]
    counts = np.bincount(places, minlength=len(found))
    order = np.argsort(-counts, kind="stable")
    order = order[: rule.categories][counts[order[: rule.categories]] >= rule.min_rows]
    rare = len(found) - len(order)
    if rare == 1 and len(found) <= rule.categories:  # it may as well have its own name
        order, rare = np.append(order, np.setdiff1d(np.arange(len(found)), order)), 0
    code = np.full(len(found), len(order), dtype=np.uint8)
    code[order] = np.arange(len(order))
    kept = [found[place] for place in order]
    # whole numbers of a column with gaps come as fractions
    kept = [int(v) if isinstance(v, float) and v.is_integer() else v for v in kept]
    names = segment_titles(kept)
    words = [f"{name} = {one}" for one in names]
    words += [f"{name}: {rare:,} rare values"] * (rare > 0)
    return _with_missing(CodedColumn(name, code[places], tuple(words)), present), rare


def _code_ranges(name: str, values: Array, rule: GroupRule) -> CodedColumn:
    """Numbers as groups: ranges that hold about equally many rows."""
    n = len(values)
    count = max(min(rule.quantiles, n // rule.min_rows), 1)
    ordered = np.sort(values)
    last = np.unique(ordered[-(-n * np.arange(1, count + 1) // count) - 1])
    ends = np.searchsorted(ordered, last, side="right")
    starts = np.append(0, ends[:-1])
    words = _range_words(name, list(zip(ordered[starts].tolist(), last.tolist(), strict=True)))
    codes = np.searchsorted(last[:-1], values, side="left").astype(np.uint8)
    return CodedColumn(name, codes, tuple(words))


def _range_words(name: str, ends: Sequence[tuple[float, float]]) -> list[str]:
    """The names of ranges, with as many digits as tell them apart.

    >>> _range_words("age", [(18.0, 25.5), (26.0, 26.0)]), _range_words("x", [(-1e9, 1.0)])
    (['age 18 to 25.5', 'age 26'], ['x −1e+09 to 1'])
    """
    words: list[str] = []
    for digits in DIGITS:
        shown = [tuple(_range_end(end, digits) for end in pair) for pair in ends]
        words = [f"{name} {' to '.join(dict.fromkeys(pair))}" for pair in shown]
        if len(set(words)) == len(words):
            break
    return words


def _range_end(value: float, digits: int) -> str:
    """An end of a range as text, with so many digits."""
    whole = abs(value) < 1e7 and (value == round(value) or abs(value) >= 10.0**digits)
    text = f"{value:.0f}" if whole else f"{value:.{digits}g}"
    return text.replace("-", "−", 1) if value < 0 else text


def _with_missing(column: CodedColumn, present: Flags) -> CodedColumn:
    """A column of all rows, made of one of the rows that have a value; missing values are a
    group."""
    if present.all():
        return column
    codes = np.full(len(present), len(column.words), dtype=np.uint8)
    codes[present] = column.codes
    return CodedColumn(column.name, codes, (*column.words, f"{column.name} missing"))


# --- crossings ------------------------------------------------------------------------------------


class Crossings:
    """All pairs of grouped columns, and the cells of each pair. A column paired with "all rows" is
    itself.

    ``place`` has the group of each cell, −1 for none.
    """

    def __init__(self, columns: Sequence[CodedColumn], rule: GroupRule) -> None:
        self.columns = columns
        self.codes = np.vstack([column.codes for column in columns])
        self.wide = len(columns) > MOST_CROSSED + 2 and rule.crossings
        first, second = np.triu_indices(len(columns), 1)
        upto = 1 if not rule.crossings else 2 if self.wide else len(columns)
        crossed = first < upto
        self.first = np.append(0, first[crossed])  # all rows by themselves come first
        self.second = np.append(0, second[crossed])
        sizes = np.array([len(column.words) for column in columns])
        self.width = sizes[self.second]
        cells = sizes[self.first] * self.width
        self.offset = np.cumsum(cells) - cells
        self.place = np.arange(int(cells.sum()))

    def sums(self, values: NDArray[Any], rows: slice, into: NDArray[Any]) -> None:
        """Add the values of some rows (a line for each) to the sums of all groups they are in."""
        from calibrant.metrics._kernel import add_to_groups

        where = (self.first, self.second, self.width, self.offset, self.place)
        add_to_groups(self.codes[:, rows], *where, values, into)

    def keep(self, enough: Flags, rows: Array) -> Index:
        """Keep the cells that are large enough and differ from their parents; their numbers.

        A crossing that has as many rows as one of its two groups is that group again.
        """
        crossing = np.repeat(np.arange(len(self.offset)), np.diff(self.offset, append=len(rows)))
        inside = np.arange(len(rows)) - self.offset[crossing]
        one, other = self.first[crossing], self.second[crossing]
        code, other_code = np.divmod(inside, self.width[crossing])
        # column k crossed with all rows is the k-th crossing: its cells are those of the column
        parents = (self.offset[one] + code, self.offset[other] + other_code)
        new = (one == 0) | ((rows != rows[parents[0]]) & (rows != rows[parents[1]]))
        kept = np.flatnonzero(enough & new)
        self.place = np.full(len(rows), -1)
        self.place[kept] = np.arange(len(kept))
        return kept

    def parts(self, cells: Index) -> list[tuple[str, ...]]:
        """The names of some cells: a word for each column that takes part, none for "all rows"."""
        crossing = np.searchsorted(self.offset, cells, side="right") - 1
        code, other = np.divmod(cells - self.offset[crossing], self.width[crossing])
        named = []
        for j, a, b in zip(crossing.tolist(), code.tolist(), other.tolist(), strict=True):
            sides = [(self.first[j], a), (self.second[j], b)]
            if self.columns[self.first[j]].name == PREDICTION:  # which stands last
                sides.reverse()
            named.append(tuple(self.columns[c].words[k] for c, k in sides if c))
        return named


# --- What `multicalibration` returns: the groups of rows, ranked, and a table of the worst --------


#: groups that are printed: those that are off beyond chance, and else the likeliest ones
SHOWN, SHOWN_UNCLEAR = 10, 5


@dataclass(frozen=True, repr=False)
class GroupError(Readable):
    """How far predictions are off in a group of rows.

    Attributes
    ----------
    name : str
        Such as ``"age 61 to 90 & country = de"``.
    rows : int
    weight : float
        The number of rows, without weights.
    predicted, observed : float
        The mean prediction, and the share of positives.
    difference : float
        Observed − predicted: above 0 where predictions are too low.
    low, high : float
        Its interval; those of all groups hold together.
    p_value : float
        Adjusted for all groups that were looked at.
    wrong : bool
        Whether the group is off beyond chance: the p-value is at most 1 − ``level``.
    same_as : str or None
        A clearer group that contains this one, or lies in it, and explains what is wrong here; None
        for a group that says something of its own.
    """

    name: str
    rows: int
    weight: float
    predicted: float
    observed: float
    difference: float
    low: float
    high: float
    p_value: float
    wrong: bool
    same_as: str | None = None

    @property
    def sure(self) -> float:
        """The least by which predictions are off, given the interval; 0 where it holds 0."""
        return max(self.low, -self.high, 0.0)

    @property
    def verdict(self) -> str:
        """What the predictions are: "too low", "too high", or "fits" where chance explains it."""
        if not self.wrong:
            return "fits"
        return "too low" if self.difference > 0.0 else "too high"


@dataclass(frozen=True, eq=False, repr=False)
class Multicalibration(PrintsAsTable, PlainFields, Frozen):
    """The result of `multicalibration`.

    Attributes
    ----------
    groups : tuple of GroupError
        All groups: first those that are off beyond chance, by how much for sure; then those that
        are, but only repeat a clearer one; then the others, by how unlikely they are.
    looked_at, wrong, repeats : int
        How many groups there are, how many of them are off beyond chance, and how many of these
        only repeat what a clearer group shows.
    p_value : float
        The chance that any group is off as clearly as the clearest one, if predictions are right.
    largest, largest_expected : float
        The largest |difference| of a group, and its mean if predictions are right.
    sure : float
        With confidence ``level`` some group is off by at least this much.
    mean, mean_expected, mean_debiased : float
        The mean |difference|, groups weighted by their rows; its mean if predictions are right; and
        an estimate without what chance adds.
    level : float
        The confidence of all intervals together.
    replicates : int
    notes : tuple of str
        What was left out or put together.
    """

    groups: tuple[GroupError, ...]
    looked_at: int
    wrong: int
    repeats: int
    p_value: float
    largest: float
    largest_expected: float
    sure: float
    mean: float
    mean_expected: float
    mean_debiased: float
    level: float
    replicates: int
    notes: tuple[str, ...] = ()

    @property
    def worst(self) -> tuple[GroupError, ...]:
        """The groups that are off beyond chance and are not explained by another group."""
        return tuple(one for one in self.groups if one.wrong and one.same_as is None)

    @property
    def shown(self) -> tuple[GroupError, ...]:
        """The groups that the table shows."""
        return self.worst[:SHOWN] or self.groups[:SHOWN_UNCLEAR]

    def to_frame(self, backend: str | None = None) -> Any:
        """All groups as a frame: pandas, polars or Arrow, whichever is there.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the first of them that is installed.
        """
        names = [field.name for field in fields(GroupError)]
        return frame_of({n: [getattr(one, n) for one in self.groups] for n in names}, backend)

    def verdict(self) -> str:
        """What was found, in a sentence."""
        together = f"at {100 * self.level:g} % confidence for all together"
        if not self.wrong:
            return f"None of {self.looked_at:,} groups is off beyond chance, {together}."
        verb = "is" if self.wrong == 1 else "are"
        said = f"{self.wrong:,} of {self.looked_at:,} groups {verb} off beyond chance, {together}"
        said += f"; the {SHOWN} worst are shown." if self.wrong - self.repeats > SHOWN else "."
        if self.repeats:
            verb = "repeats" if self.repeats == 1 else "repeat"
            said += f" {self.repeats:,} of them only {verb} what a clearer group shows."
        return said

    def summary(self) -> str:
        """What was found, with the worst group, in one line."""
        said = self.verdict().split(". ")[0].rstrip(".").replace("None of", "none of")
        if not self.worst:
            return said
        one = self.worst[0]
        figures = f"{short_value(one.predicted)} predicted, {short_value(one.observed)} observed"
        return f"{said}; the worst is {one.name}: {figures}"

    def _table(self) -> ResultTable:
        weighted = any(one.weight != one.rows for one in self.groups)
        columns = [
            TableColumn("group", "left", widest=44),
            TableColumn("weight" if weighted else "rows", may_break=False, expendable=0),
            TableColumn("predicted", may_break=False),
            TableColumn("observed", may_break=False),
            TableColumn("difference", may_break=False),
            TableColumn(f"{100 * self.level:g} % interval", expendable=1),
            TableColumn("p", may_break=False),
        ]
        return ResultTable(
            columns, [TableRow(self._cells(one)) for one in self.shown], self._below()
        )

    def _cells(self, one: GroupError) -> tuple[str, ...]:
        return (
            one.name,
            format_count(round(one.weight, 2)),
            shown_value(one.predicted),
            shown_value(one.observed),
            _with_sign(one.difference),
            f"{_with_sign(one.low)} to {_with_sign(one.high)}",
            shown_p(one.p_value),
        )

    def _below(self) -> list[str]:
        chance = "by chance alone it would be about"
        return [
            *self.verdict().replace(". ", ".\n").split("\n"),
            f"largest difference {shown_value(self.largest)} ({chance} "
            f"{shown_value(self.largest_expected)}); mean {shown_value(self.mean)} "
            f"({shown_value(self.mean_expected)})",
            *(f"note: {note}" for note in self.notes),
        ]


def _with_sign(value: float) -> str:
    """A value as text, with a plus where it is above 0."""
    return f"+{shown_value(value)}" if value > 0.0 else shown_value(value)
