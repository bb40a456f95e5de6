"""Grades of risk: a master scale from a calibrator, and whether each grade's rate is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

from calibrant.array_types import Array
from calibrant.data.door import read_probabilities
from calibrant.data.frozen import Frozen
from calibrant.data.score_table import rows_count_once
from calibrant.errors import InputError, ParameterError
from calibrant.losses import logit, sigmoid
from calibrant.metrics.chance import Span, clopper_pearson
from calibrant.metrics.tables import check_number, check_whole, holm_adjusted, read_table
from calibrant.monitor.drift import map_of_one_score
from calibrant.result_tables import (
    PrintsAsTable,
    ResultTable,
    TableColumn,
    TableRow,
    format_count,
    shown_percent,
)
from calibrant.rules.piecewise import probability_range, score_at

#: names of grades; if there are more grades than letters, they have numbers
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: the first and the last boundary of the default grades
DEFAULT_RANGE = (0.0003, 0.3)
#: a grade's light is red up to the first p-value, amber up to the second, and green above
RED, AMBER = 0.01, 0.05


@dataclass(frozen=True, eq=False, repr=False)
class MasterScale(PrintsAsTable, Frozen):
    """Grades of risk: ranges of probability with names, the least risk first.

    Attributes
    ----------
    boundaries : array of shape (g − 1,)
        Probabilities, ascending: a probability at a boundary belongs to the grade above it.
    names : tuple of g texts
    scores : array of shape (g − 1,), or None
        The same boundaries on the scale of the score, if a calibrator came. A score at or above a
        boundary (if the map falls: at or below it) belongs to the grade above.
    """

    boundaries: Array
    names: tuple[str, ...]
    scores: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "boundaries", _read_boundaries(0, self.boundaries))
        object.__setattr__(self, "names", _read_names(self.names, len(self.boundaries) + 1))
        super().__post_init__()

    @classmethod
    def of(
        cls,
        calibrator: Any = None,
        *,
        grades: int = 10,
        boundaries: Any = None,
        names: Any = None,
    ) -> Self:
        """A master scale of so many grades, or with given boundaries.

        Parameters
        ----------
        calibrator : fitted calibrator, Fitted or Map, optional
            One of a single score that rises or falls throughout. With it, the scale also has its
            boundaries as scores.
        grades : int, default=10
            How many grades. The boundaries are equally spaced in log-odds from 0.03 % to 30 %.
        boundaries : sequence of probabilities, ascending, optional
            In place of ``grades``: g − 1 boundaries make g grades.
        names : sequence of texts, optional
            By default A, B, C, …, the least risk first.

        Notes
        -----
        Boundaries as scores are exact (`Fitted.score_at`). They are ±∞ where the calibrator's
        probabilities do not reach the boundary. O(g).

        Examples
        --------
        >>> from calibrant.maps import Identity
        >>> scale = MasterScale.of(Identity(), boundaries=[0.01, 0.05, 0.2])
        >>> scale.grade([0.002, 0.05, 0.5]).tolist()
        ['A', 'C', 'D']
        """
        cuts = _read_boundaries(grades, boundaries)
        named = _read_names(names, len(cuts) + 1)
        if calibrator is None:
            return cls(cuts, named)
        map_ = map_of_one_score(calibrator)
        least, most = probability_range(map_)
        far = np.inf if map_.trend > 0 else -np.inf
        beyond = np.where(cuts < least, -far, far)
        scores = [
            score_at(map_, cut).score if least <= cut <= most else end
            for cut, end in zip(cuts.tolist(), beyond.tolist(), strict=True)
        ]
        return cls(cuts, named, np.array(scores))

    def grade(self, p: Any) -> NDArray[np.str_]:
        """The name of the grade of each probability."""
        place = np.searchsorted(self.boundaries, read_probabilities(p), "right")
        return np.array(self.names)[place]

    def check(
        self,
        y: Any,
        p: Any = None,
        *,
        pos_label: Any = None,
        level: float = 0.05,
        confidence: float = 0.9,
    ) -> GradeChecks:
        """Is the rate of each grade what was predicted?

        Parameters
        ----------
        y : array-like of shape (n,), or ScoreTable
            Labels; or a table whose scores are the probabilities (then p is left out). Each row
            counts once.
        p : array-like of shape (n,), or a binary predict_proba
            The probabilities that were given.
        pos_label : label, optional
            What p is the probability of, such as default.
        level : float, default=0.05
            The chance that any grade is called too low, or any too high, if all are right.
        confidence : float, default=0.9
            That of the intervals of each grade's rate; 0.9 leaves out 5 % at either end, as amber
            lights do.

        Notes
        -----
        Jeffreys's test is the one that supervisors use. With d of n rows positive, its p-value is
        the chance, under Beta(d + ½, n − d + ½), that the true rate is at most the mean prediction.
        If it is small, the prediction is too low. The p-value of the binomial test is the chance of
        d or more positives at the mean prediction. Both are one-sided and corrected by Holm's
        step-down over the grades. For the binomial test, the chance of any false call is then at
        most ``level``; for Jeffreys's it may be a little more if few positives are expected. Rows
        must be independent: defaults that come together (a bad year) cause false calls in both.

        Lights are those of Jeffreys's test of each grade alone: green above 5 %, amber above 1 %,
        red at 1 % or below. So of ten right grades one or more are not green in about four samples
        of ten; the verdict, which counts the grades, is the one to act on. The Clopper–Pearson
        interval runs from B(α/2; d, n − d + 1) to B(1 − α/2; d + 1, n − d), B the quantile of the
        beta distribution and α = 1 − ``confidence``, and holds the rate at least that often.
        Jeffreys's, from B(α/2; d + ½, n − d + ½) to B(1 − α/2; d + ½, n − d + ½), is shorter and
        holds it about that often; it begins at 0 where d = 0 and ends at 1 where d = n. O(g) after
        the table.

        References
        ----------
        .. [1] European Central Bank, "Instructions for reporting the validation results of
           internal models", 2019, section 2.5.3.
        .. [2] L. Brown, T. Cai, A. DasGupta, "Interval estimation for a binomial proportion", 2001,
           doi:10.1214/ss/1009213286.

        Examples
        --------
        >>> scale = MasterScale.of(boundaries=[0.1])
        >>> y = [0] * 90 + [1] * 10 + [1] * 40 + [0] * 60
        >>> found = scale.check(y, [0.05] * 100 + [0.4] * 100)
        >>> [row.light for row in found.rows], found.too_low
        (['amber', 'green'], ('A',))
        >>> [[round(end, 3) for end in row.clopper_pearson] for row in found.rows]
        [[0.055, 0.164], [0.318, 0.487]]
        """
        check_number("level", level, 0.0, 1.0)
        check_number("confidence", confidence, 0.0, 1.0)
        table = read_table(y, p, None, pos_label)
        if not rows_count_once(table):
            raise InputError("the rows of a grade must count once each, but the table has weights.")
        grade = np.searchsorted(self.boundaries, table.scores, side="right")
        count = len(self.names)
        n, d, expected = (
            np.bincount(grade, column, minlength=count)
            for column in (table.weight, table.positive, table.weight * table.scores)
        )
        with np.errstate(invalid="ignore"):
            predicted, rate = expected / n, d / n
        some = n > 0  # a grade without rows, or without a positive, has the p-value 1
        low = np.where(some, betainc(d + 0.5, n - d + 0.5, predicted), 1.0)
        high = np.where(some, 1.0 - low, 1.0)
        exact = np.where(d > 0, betainc(d, n - d + 1.0, predicted), 1.0)
        adjusted = np.ones((3, count))
        for corrected, values in zip(adjusted, (low, exact, high), strict=True):
            corrected[some] = holm_adjusted(values[some].tolist())
        tail = (1.0 - confidence) / 2.0
        clopper = clopper_pearson(n.astype(np.float64), d / np.maximum(n, 1.0), tail)
        least, most = (betaincinv(d + 0.5, n - d + 0.5, end) for end in (tail, 1.0 - tail))
        jeffreys = np.where(d > 0.0, least, 0.0), np.where(d < n, most, 1.0)
        # without positives nothing says that the prediction is too low
        lights = np.select([(low > AMBER) | (d == 0.0), low > RED], ["green", "amber"], "red")
        columns = zip(
            self.names,
            *np.array((n, d, predicted, rate, low, exact, *adjusted)).tolist(),
            *(zip(*np.array(ends).tolist(), strict=True) for ends in (clopper, jeffreys)),
            lights.tolist(),
            strict=True,
        )
        rows = tuple(GradeRow(*row) for row in columns)
        return GradeChecks(self, rows, float(level), float(confidence))

    def _table(self) -> ResultTable:
        """A line for each grade."""
        edges = [0.0, *self.boundaries.tolist(), 1.0]
        columns = [TableColumn("grade", "left"), TableColumn("from"), TableColumn("to")]
        ends = [list(map(shown_percent, end)) for end in (edges[:-1], edges[1:])]
        cells = [self.names, *ends]
        if self.scores is not None:
            columns.append(TableColumn("score at its lower end"))
            cells.append(["", *(f"{score:.6g}" for score in self.scores)])
        return ResultTable(columns, [TableRow(row) for row in zip(*cells, strict=True)])


@dataclass(frozen=True)
class GradeRow:
    """What a check found in one grade.

    Attributes
    ----------
    name : str
    rows, positive : float
        How many, and how many of them were positive.
    predicted, rate : float
        The mean prediction and the share of positives; NaN for a grade without rows.
    jeffreys, binomial : float
        p-values against predictions that are too low.
    jeffreys_adjusted, binomial_adjusted : float
        The same after Holm's correction for the number of grades.
    too_high : float
        Jeffreys's p-value against predictions that are too high, corrected too.
    clopper_pearson, jeffreys_interval : (float, float)
        Intervals of the rate; 0 to 1 for a grade without rows.
    light : {"green", "amber", "red"}
        Jeffreys's p-value, not corrected: above 5 %, above 1 %, or not.
    """

    name: str
    rows: float
    positive: float
    predicted: float
    rate: float
    jeffreys: float
    binomial: float
    jeffreys_adjusted: float
    binomial_adjusted: float
    too_high: float
    clopper_pearson: Span = (0.0, 1.0)
    jeffreys_interval: Span = (0.0, 1.0)
    light: str = "green"


@dataclass(frozen=True, eq=False, repr=False)
class GradeChecks(PrintsAsTable, Frozen):
    """The result of `MasterScale.check`: a row for each grade.

    ``too_low`` and ``too_high`` are the names of the grades whose prediction is found so. A grade
    without positives is never called too low, and one of positives only never too high.
    """

    scale: MasterScale
    rows: tuple[GradeRow, ...]
    level: float
    confidence: float = 0.9

    @property
    def too_low(self) -> tuple[str, ...]:
        """The grades in which more positives came than was predicted."""
        return tuple(
            row.name for row in self.rows if row.jeffreys_adjusted <= self.level and row.positive
        )

    @property
    def too_high(self) -> tuple[str, ...]:
        """The grades in which fewer positives came than was predicted."""
        return tuple(
            row.name for row in self.rows if row.too_high <= self.level and row.positive < row.rows
        )

    def _table(self) -> ResultTable:
        """A line for each grade."""
        interval = f"{100 * self.confidence:g} % interval"
        titles = ("rows", "positive", "predicted", "observed", interval, "Jeffreys", "binomial")
        columns = [TableColumn("grade", "left"), *map(TableColumn, titles)]
        columns += [TableColumn("light", "left", expendable=1), TableColumn("verdict")]
        rows = []
        for row in self.rows:
            verdict = "too low" if row.name in self.too_low else ""
            verdict = "too high" if row.name in self.too_high else verdict
            counts = (format_count(row.rows), format_count(row.positive))
            figures = ["–"] * 6
            if row.rows:
                figures = [shown_percent(row.predicted), shown_percent(row.rate)]
                figures.append(" to ".join(shown_percent(e, 2) for e in row.jeffreys_interval))
                figures += [f"{p:.3g}" for p in (row.jeffreys_adjusted, row.binomial_adjusted)]
                figures.append(row.light)
            rows.append(TableRow((row.name, *counts, *figures, verdict)))
        below = [
            "p-values are against predictions that are too low, corrected for the number of grades",
            "lights are of each grade alone; intervals are Jeffreys's",
        ]
        return ResultTable(columns, rows, below)


# --- inside -------------------------------------------------------------------------------------


def _read_boundaries(grades: int, given: Any) -> Array:
    """The boundaries of grades, checked; by default evenly spaced in log-odds."""
    if given is None:
        count = check_whole("grades", grades, 2)
        low, high = logit(np.array(DEFAULT_RANGE))
        return sigmoid(np.linspace(low, high, count - 1))
    try:
        cuts = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        cuts = np.empty(0)
    fine = cuts.ndim == 1 and len(cuts) > 0 and bool((np.diff(cuts) > 0.0).all())
    if not fine or not (cuts[0] > 0.0 and cuts[-1] < 1.0):
        raise ParameterError(
            f"boundaries must be ascending probabilities above 0 and below 1, but {given!r} came."
        )
    return cuts


def _read_names(given: Any, count: int) -> tuple[str, ...]:
    """The names of grades, checked; by default letters or numbers."""
    if given is None:
        return tuple(LETTERS[:count] if count <= len(LETTERS) else map(str, range(1, count + 1)))
    names = tuple(map(str, given))
    if len(names) != count or len(set(names)) != count:
        raise ParameterError(f"there must be {count} different names, but {names!r} came.")
    return names
