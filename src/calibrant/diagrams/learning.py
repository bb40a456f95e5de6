"""How much calibration data is enough: a measure against the number of rows, computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from calibrant import metrics
from calibrant.array_types import Array, Index
from calibrant.data.door import Rows, read_binary
from calibrant.data.frozen import Frozen
from calibrant.data.scale import IN_SHORT
from calibrant.data.score_table import ScoreTable
from calibrant.diagrams.curve import printed_columns
from calibrant.errors import InputError, ParameterError, did_you_mean
from calibrant.fitting.registry import BEFORE, check_pos_labels, copy_for_tables, named_methods
from calibrant.metrics.measures import MEASURES, Measure
from calibrant.metrics.point_measures import TableFacts
from calibrant.metrics.tables import check_number, check_whole, read_generator
from calibrant.result_tables import PlainFields, json_ready
from calibrant.rules.base import Map
from calibrant.running import track

#: 32, 64, …, 8192
SIZES = tuple(2**k for k in range(5, 14))


class Difference(NamedTuple):
    """The values of one method minus those of another, paired draw by draw.

    Attributes
    ----------
    mean, standard_error : arrays of shape (sizes,)
    low, high : arrays of shape (sizes,)
        The band of the mean.
    """

    mean: Array
    standard_error: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve(PlainFields, Frozen):
    """A measure on held-out rows against the number of calibration rows, method by method.

    Attributes
    ----------
    names : tuple of str
        The methods; the first, ``"uncalibrated"``, is the scores as they came.
    sizes : array of shape (sizes,)
        How many rows the methods were fitted to.
    values : array of shape (methods, sizes, repeats)
        The measure on the rows left, draw by draw; draw k is the same rows for all methods.
    mean, standard_error, low, high : arrays of shape (methods, sizes)
        Over the draws; ``low`` and ``high`` are the band of the mean.
    level : float
        The level of that band.
    measure : str
        What was measured, in words.
    better : {"smaller", "larger"}
    rows : int
        How many rows there are to draw from.
    one_class : array of shape (sizes,)
        In how many of the draws all calibration rows had the same class.
    linked : bool
        Whether the scores are no probabilities: ``"uncalibrated"`` is then what they stand for.
    notes : tuple of str
        What deserves a look.
    reading : str
        How they were read then, in words: ``"through σ"``, say.
    """

    names: tuple[str, ...]
    sizes: NDArray[np.int64]
    values: Array
    level: float
    measure: str
    better: str
    rows: int
    one_class: NDArray[np.int64]
    linked: bool
    notes: tuple[str, ...] = ()
    reading: str = ""

    @property
    def repeats(self) -> int:
        """The number of draws of each size."""
        return int(self.values.shape[-1])

    @property
    def mean(self) -> Array:
        return np.asarray(self.values.mean(axis=-1))

    @property
    def standard_error(self) -> Array:
        return _summary(self.values, self.level).standard_error

    @property
    def low(self) -> Array:
        return _summary(self.values, self.level).low

    @property
    def high(self) -> Array:
        return _summary(self.values, self.level).high

    def difference(self, a: str, b: str) -> Difference:
        """The values of method ``a`` minus those of ``b`` at each size, from paired draws.

        All methods saw the same rows, so their difference is known far better than either value;
        NaN where both are infinite.
        """
        with np.errstate(invalid="ignore"):
            gaps = self.values[self._number_of(a)] - self.values[self._number_of(b)]
        return _summary(gaps, self.level)

    def crossing(self, a: str, b: str) -> int | None:
        """The smallest size from which on ``b`` is better than ``a`` on average.

        None if ``b`` is not better at the largest size.
        """
        gain = self.difference(a, b).mean * (1.0 if self.better == "smaller" else -1.0)
        behind = np.flatnonzero(~(gain > 0))
        first = int(behind[-1]) + 1 if len(behind) else 0
        return int(self.sizes[first]) if first < len(self.sizes) else None

    def _number_of(self, name: str) -> int:
        if name not in self.names:
            known = ", ".join(repr(n) for n in self.names)
            hint = did_you_mean(name, self.names)
            raise ParameterError(f"a method must be one of {known}, but {name!r} came.{hint}")
        return self.names.index(name)

    def to_dict(self) -> dict[str, Any]:
        """The attributes as plain lists and numbers; an infinite number is ``"inf"``."""
        summaries = ("mean", "standard_error", "low", "high")
        return super().to_dict() | {name: json_ready(getattr(self, name)) for name in summaries}

    def __repr__(self) -> str:
        return (
            f"LearningCurve({self.measure} of {', '.join(self.names)}; {len(self.sizes)} sizes "
            f"from {self.sizes[0]} to {self.sizes[-1]}, {self.repeats} draws of {self.rows} rows)"
        )

    def __str__(self) -> str:
        head = f"{self.measure} ({self.better} is better), mean of {self.repeats} draws ± its error"
        columns = [["rows", *(str(size) for size in self.sizes)]]
        for name, means, errors in zip(self.names, self.mean, self.standard_error, strict=True):
            column = [name]
            for mean, error in zip(means, errors, strict=True):
                places = ".4f" if mean == 0 or abs(mean) >= 1e-4 else ".2e"
                reach = f" ± {error:{places}}" if math.isfinite(mean) else ""
                column.append(f"{in_short(mean)}{reach}")
            columns.append(column)
        lines = printed_columns(columns, "right")
        return "\n".join([head, *lines, *(f"note: {note}" for note in self.notes)])


def in_short(value: float) -> str:
    """A value as tables and legends show it.

    >>> in_short(0.123456), in_short(1.23456e-5), in_short(float("inf"))
    ('0.1235', '1.23e-05', '∞')
    """
    if not math.isfinite(value):
        return "∞"
    return f"{value:.4f}" if value == 0 or abs(value) >= 1e-4 else f"{value:.2e}"


def _summary(values: Array, level: float) -> Difference:
    """The mean over the last axis, with its standard error and t-interval.

    The interval of an infinite mean has no width.
    """
    repeats = values.shape[-1]
    mean = np.asarray(values.mean(axis=-1))
    finite = np.asarray(np.isfinite(values).all(axis=-1))
    spread = np.where(finite[..., None], values, 0.0).std(axis=-1, ddof=1)
    error = np.where(finite, spread / math.sqrt(repeats), math.inf)
    reach = np.where(finite, error, 0.0) * stdtrit(repeats - 1, (1 + level) / 2)
    return Difference(mean, error, mean - reach, mean + reach)


def learning_curve(
    calibrators: Any,
    scores: ArrayLike,
    y: ArrayLike,
    *,
    sizes: Iterable[int] = SIZES,
    repeats: int = 10,
    measure: str | Callable[..., float] = "brier",
    larger_is_better: bool | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    random_state: Any = None,
    progress: bool = False,
) -> LearningCurve:
    """How good calibration is after so many rows: how much calibration data do I need?

    For each size, rows are drawn at random, the methods fitted to them, and judged on all others.

    Parameters
    ----------
    calibrators : calibrator or its name, list of them, or dict of name to calibrator
        Unfitted, or fitted (they are cloned, and stay as they are).
    scores : array-like of shape (n,), (n, 1) or (n, 2)
        Held-out scores of a model, of any kind, or its binary predict_proba.
    y : array-like of shape (n,)
        Labels: any two values.
    sizes : whole numbers, default=32, 64, …, 8192
        Numbers of calibration rows. A size that leaves less than one row in twenty to test on is
        dropped, with a note.
    repeats : int, default=10
        How often each size is drawn; at least 2.
    measure : str or callable, default="brier"
        The name of a measure of `evaluate`, such as ``"brier"``, ``"log_loss"``, ``"ece"``,
        ``"auc"`` or ``"miscalibration"``, with its default options.
        Or a function called as ``measure(y, p, sample_weight=w)``, with y 0 or 1 (1: the positive
        class) and w None where there are no weights, that returns a number.
    larger_is_better : bool, optional
        The sense of a function given as measure; False if not said.
    level : float, default=0.95
        Of the band of the mean.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0, used in fits and measures; a row of weight zero is never drawn.
    pos_label : label, default: the larger class
        What a high score means.
    random_state : int, Generator or None, default=None
        Seed of the draws.
    progress : bool, default=False
        Show a bar.

    Returns
    -------
    LearningCurve

    Notes
    -----
    Draw k puts the rows in a random order, and its calibration set of size s is the first s of
    them: plain draws without replacement, not stratified, which grow as data do. So all methods
    see the same rows, and other sizes, methods or further repeats do not change a value. With rare
    positives a small draw may hold one class only; it is kept, since that is what so few rows
    bring, and ``one_class`` counts such draws.

    The uncalibrated line moves with the size only because the test rows change. Scores outside
    [0, 1] are read there as in `Uncalibrated`, by all rows: percentages are divided by 100, margins
    pass through σ, and points, which stand for no probability, become the one rate of all rows.
    AUC only ranks, and takes scores as they are.

    The band is mean ± t·s/√repeats: where the mean of endlessly many draws *from these rows* lies.
    It knows nothing of other data, and single draws scatter √repeats times as much as the standard
    error. An infinite log loss makes its mean infinite, and a note counts the draws.

    O(N log N) once, then O(N) for each draw and method besides its fit.

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.

    Examples
    --------
    >>> import calibrant as cal, numpy as np
    >>> random = np.random.default_rng(0)
    >>> p = random.random(2000)
    >>> y = random.random(2000) < p**2
    >>> curve = learning_curve(
    ...     [cal.Platt(), cal.Isotonic()], p, y, sizes=[32, 256, 1024], random_state=0
    ... )
    >>> print(curve)
    Brier score (smaller is better), mean of 10 draws ± its error
    rows     uncalibrated            Platt         Isotonic
      32  0.1643 ± 0.0002  0.1380 ± 0.0019  0.1503 ± 0.0034
     256  0.1640 ± 0.0005  0.1296 ± 0.0006  0.1330 ± 0.0010
    1024  0.1656 ± 0.0016  0.1300 ± 0.0014  0.1310 ± 0.0012
    >>> gap = curve.difference("Isotonic", "Platt")
    >>> (gap.low > 0).tolist(), curve.crossing("Platt", "Isotonic")
    ([True, True, True], None)
    """
    named = named_methods(calibrators)
    repeats = check_whole("repeats", repeats, 2)
    level = check_number("level", level, 0.0, 1.0)
    judge = judge_of(measure, larger_is_better)
    rows = read_binary(scores, y, sample_weight, pos_label=pos_label)
    if rows.weight is not None:
        rows = rows.take(rows.weight > 0)
    check_pos_labels(named, rows)
    kept, dropped = checked_sizes(sizes, len(rows.scores))
    trials = Trials(
        rows, [None, *(copy_for_tables(calibrator) for calibrator in named.values())], judge
    )
    reading = IN_SHORT.get(trials.whole.scale.kind, "")
    values = np.empty((1 + len(named), len(kept), repeats))
    one_class = np.zeros(len(kept), dtype=np.int64)
    random = read_generator(random_state)
    orders = (random.permutation(len(rows.scores)) for _ in range(repeats))
    steps = ((k, order, s, n) for k, order in enumerate(orders) for s, n in enumerate(kept))
    for k, order, s, n in track(steps, repeats * len(kept), "draws", show=progress):
        values[:, s, k], one = trials.values(order[:n])
        one_class[s] += one
    names = (BEFORE, *named)
    notes = _notes_on_draws(dropped, one_class, trials.whole, names, values, judge)
    return LearningCurve(
        names,
        np.asarray(kept, dtype=np.int64),
        values,
        level,
        judge.label,
        judge.better,
        len(rows.scores),
        one_class,
        bool(reading),
        notes,
        reading,
    )


def _notes_on_draws(
    dropped: list[int],
    one_class: NDArray[np.int64],
    whole: ScoreTable,
    names: tuple[str, ...],
    values: Array,
    judge: Judge,
) -> tuple[str, ...]:
    notes = []
    read = whole.scale.words()
    if read and not judge.ranks:
        notes.append(f"{BEFORE}: scores {read}")
    if dropped:
        sizes = ", ".join(map(str, dropped))
        notes.append(f"too few rows would be left to test on after {sizes}: dropped")
    draws = values[0].size
    if one_class.any():
        notes.append(f"{one_class.sum()} of {draws} draws held one class only")
    for name, infinite in zip(names, np.isinf(values).sum(axis=(1, 2)), strict=True):
        if infinite:
            notes.append(f"{judge.label} of {name} is infinite in {infinite} of {draws} draws")
    return tuple(notes)


# --------------------------------------------------------------------------------------------------
# The trials of a learning curve: methods, measures, and draws of rows to fit to and judge on


#: a size that leaves a smaller part of the rows to test on is dropped
SMALLEST_TEST = 0.05


# --- measures -----------------------------------------------------------------------------------


#: bins of ECE and MCE
BINS = 10


def _table_value(measure: Measure, table: ScoreTable) -> float:
    """A measure of a table whose scores may be margins."""
    value, reason = measure.value_of(TableFacts(table, BINS))
    if value is None:
        raise InputError(
            f"{reason} in the rows left to test on. Pass smaller sizes, or another measure."
        )
    return value


@dataclass(frozen=True)
class Judge:
    """A measure: what it is called, which way is better, and how it is found.

    ``of_table`` reads a table of predictions; without it ``of_rows`` reads labels, predictions and
    weights. A measure that only ``ranks`` takes margins as they are.
    """

    label: str
    better: str
    of_table: Callable[[ScoreTable], float] | None = None
    of_rows: Callable[..., Any] | None = None
    ranks: bool = False


def judge_of(measure: Any, larger_is_better: Any = None) -> Judge:
    """The judge for a name, or for a function of rows.

    >>> judge_of("auc").better, judge_of(max, True).label
    ('larger', 'max')
    """
    if larger_is_better not in (None, True, False):
        raise ParameterError(
            f"larger_is_better must be True, False or None, but {larger_is_better!r} came."
        )
    word = next((n for n in MEASURES if measure is getattr(metrics, n, MEASURES)), measure)
    if isinstance(word, str) and word in MEASURES:
        known = MEASURES[word]
        if larger_is_better not in (None, known.better == "larger"):
            raise ParameterError(
                f"larger_is_better must be left out for {word!r}, of which {known.good} is "
                f"good, but {larger_is_better!r} came."
            )
        if known.better == "closer":  # a mean of values on both sides of the target says nothing
            label = f"|{known.label} − {known.target:g}|" if known.target else f"|{known.label}|"
            return Judge(label, "smaller", lambda table: known.badness(_table_value(known, table)))
        return Judge(known.label, known.better, partial(_table_value, known), ranks=known.ranks)
    if not callable(measure):
        allowed = ", ".join(repr(name) for name in MEASURES)
        raise ParameterError(
            f"measure must be one of {allowed}, or a function (y, p, sample_weight=), but "
            f"{measure!r} came.{did_you_mean(measure, MEASURES)}"
        )
    label = getattr(measure, "__name__", type(measure).__name__)
    return Judge(label, "larger" if larger_is_better else "smaller", of_rows=measure)


# --- sizes --------------------------------------------------------------------------------------


def checked_sizes(sizes: Iterable[int], n: int) -> tuple[list[int], list[int]]:
    """The sizes that leave enough rows to test on, ascending, and those that do not."""
    if isinstance(sizes, (str, bytes)) or not isinstance(sizes, Iterable):
        raise ParameterError(f"sizes must be whole numbers, such as (32, 64), but {sizes!r} came.")
    wanted = sorted({check_whole("each of sizes", size, 1) for size in sizes})
    if not wanted:
        raise ParameterError("sizes must be at least one whole number, but none came.")
    most = n - max(1, math.ceil(SMALLEST_TEST * n))
    kept = [size for size in wanted if size <= most]
    if not kept:
        raise InputError(
            f"sizes must leave rows to test on: of {n} rows at most {most} can be drawn, but the "
            f"smallest size is {wanted[0]}. Bring more rows, or pass smaller sizes."
        )
    return kept, wanted[len(kept) :]


# --- trials -------------------------------------------------------------------------------------


class Trials:
    """Methods judged on the rows that a draw leaves, after they are fitted to those drawn.

    None among the ``methods`` stands for the scores as they came.
    """

    def __init__(self, rows: Rows, methods: Sequence[Any], judge: Judge) -> None:
        self.rows, self.methods, self.judge = rows, methods, judge
        order = np.argsort(rows.scores, kind="stable")
        self.ordered, self.place = rows.take(order), np.argsort(order)  # soon made a table

    @cached_property
    def whole(self) -> ScoreTable:
        """The table of all rows."""
        return ScoreTable.from_rows(self.rows)

    @cached_property
    def as_they_came(self) -> Callable[[Array], Array]:
        """The probabilities that scores stand for, read by those of all rows; where the measure
        only ranks, the scores themselves."""
        from calibrant.methods.uncalibrated import Uncalibrated

        if self.judge.ranks:
            return np.asarray
        fitted: Map = Uncalibrated().fit_table(self.whole).map_
        return fitted

    def values(self, drawn: Index) -> tuple[list[float], bool]:
        """The measure after each method that is fitted to the rows of these numbers, on the others.

        And whether all rows drawn have the same class.
        """
        table = ScoreTable.from_rows(self.rows.take(drawn)).part_of(self.whole.scale)
        maps = [
            self.as_they_came if method is None else method.fit_table(table).map_
            for method in self.methods
        ]
        left = np.ones(len(self.place), dtype=bool)
        if self.judge.of_table is None:
            left[drawn] = False
            found = self._of_rows(maps, self.rows.take(left))
        else:
            left[self.place[drawn]] = False
            others = ScoreTable.from_rows(self.ordered.take(left))
            found = [self.judge.of_table(others.through(apply)) for apply in maps]
        return found, not (table.total_positive and table.total_negative)

    def _of_rows(self, maps: Iterable[Callable[[Array], Array]], rows: Rows) -> list[float]:
        """The values of a measure that reads rows."""
        y, judge = rows.positive.astype(np.int64), self.judge
        values = []
        for apply in maps:
            found = judge.of_rows(y, apply(rows.scores), sample_weight=rows.weight)  # type: ignore[misc]
            if not isinstance(found, Real) or math.isnan(found):
                raise InputError(
                    f"measure must return a number, but {judge.label} returned {found!r} after "
                    f"calibration with {len(self.rows.scores) - len(rows.scores)} rows."
                )
            values.append(float(found))
        return values
