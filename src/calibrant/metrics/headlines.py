"""What must be known of scores first: do they say anything, and which way do they run?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtri_exp

from calibrant.array_types import Array, Flags, Index
from calibrant.data.columns import plain
from calibrant.data.frozen import read_only as frozen
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable, table_in_rows
from calibrant.errors import shell_quoted
from calibrant.metrics.chance import (
    RowWeights,
    Span,
    area_interval,
    auc_influence_of_cells,
    wilson_area,
)
from calibrant.metrics.point_measures import area
from calibrant.metrics.tables import class_sizes
from calibrant.tensors import on_host

# --------------------------------------------------------------------------------------------------
# What must be known of scores before anything else: both classes, their direction, their worth


#: the level of the interval of AUC behind all claims: each end fails in 0.5 % of samples at most
LEVEL = 0.99
#: AUCs between these are worth nothing in practice
WORTHLESS = (0.45, 0.55)
#: fewer rows of a class are too few to learn from, or to judge by
FEW = 10
#: bins and rows of a bin (of each class) for the question whether the share differs at all, and
#: the chance that it seems to where it does not
BINS, BIN_ROWS, BIN_CASES, ALPHA = 20, 50.0, 5.0, 1e-3

Face = Literal["python", "command line", "page", "check", "evaluate"]
Found = Literal["one class", "wrong way", "nothing", "no order", "not told", "something"]


class LabelNames(NamedTuple):
    """The names of the labels in a headline, and where the headline is read.

    ``label`` is the name of their column. The two labels are None where they are not known.
    ``face`` is where the headline is read: a page may be read by users of either, and where
    probabilities are measured no direction can be said.
    """

    label: str = ""
    positive: Any = None
    negative: Any = None
    face: Face = "python"

    @classmethod
    def of(cls, classes: Any, pos_label: Any, label: str = "", face: Face = "python") -> LabelNames:
        """The names, from both classes and the positive one.

        >>> LabelNames.of(["no", "yes"], "yes", face="evaluate").question
        "Is it 'no' that is meant? Say --pos-label no."
        """
        positive = plain(pos_label)
        others = [plain(one) for one in classes if plain(one) != positive]
        return cls(label, positive, others[0] if len(others) == 1 else None, face)

    @property
    def about(self) -> str:
        """The name of what scores should predict."""
        return f"`{self.label}`" if self.label else "the labels"

    @property
    def question(self) -> str:
        """What may have gone wrong where scores run the wrong way: low scores mean the positive
        label, or the other label was meant; in a check of new rows, something was turned round."""
        if self.face == "check":
            return "Are the labels or the scores turned round?"
        if self.negative is None:
            return "Did you mean the other label as pos_label?"
        typed = f"--pos-label {shell_quoted(str(self.negative))}"
        other = self._said(f"pos_label={self.negative!r}", typed)
        meant = f"Is it {self.negative!r} that is meant? Say {other}."
        if self.face == "evaluate":
            return meant
        falling = self._said('direction="falling"', "--direction falling")
        return f"Do low scores mean {self.positive!r}, as credit scores do? Say {falling}. {meant}"

    def _said(self, written: str, typed: str) -> str:
        """An option as it is written in Python, typed on the command line, or both on a page."""
        return {"python": written, "page": f"{written} ({typed})"}.get(self.face, typed)

    @property
    def other(self) -> str:
        """The label that high scores go with where they run the wrong way."""
        return "negatives" if self.negative is None else repr(self.negative)

    def named(self, positive: bool) -> str:
        """The name of the positive or of the negative label."""
        label = self.positive if positive else self.negative
        word = "positive" if positive else "negative"
        return word if label is None else repr(label)


@dataclass(frozen=True)
class Look:
    """What is known of scores before anything is fitted or measured, and the AUC that says so."""

    found: str
    auc: float | None
    low: float | None
    high: float | None

    @property
    def few(self) -> bool:
        """Whether a class has too few rows to judge by."""
        return False

    @property
    def sound(self) -> bool:
        """Whether the scores predict the labels, and enough rows came."""
        return self.found == "something" and not self.few

    @property
    def useless(self) -> bool:
        """Whether something else must be put right before calibration makes sense."""
        return self.found not in ("something", "not told")

    @property
    def unproven(self) -> bool:
        """Whether it is not proven that the scores predict anything."""
        return self.found != "something"

    @property
    def figures(self) -> str:
        """The AUC and its interval as text; nothing without an AUC.

        >>> Look("not told", 0.5234, 0.48, 0.56).figures
        'AUC 0.52 (99 % interval 0.48 to 0.56)'
        """
        if self.auc is None or self.low is None or self.high is None:
            return ""
        digits = 2 if self.high - self.low >= 0.02 else 4
        ends = f"{self.low:.{digits}f} to {self.high:.{digits}f}"
        return f"AUC {self.auc:.{digits}f} ({100 * LEVEL:g} % interval {ends})"


def runs_wrong(low: float, high: float) -> bool:
    """Whether high scores go with negatives, by the interval of the AUC."""
    return high < 0.5 and low < WORTHLESS[0]


def worthless(low: float, high: float) -> bool:
    """Whether scores predict next to nothing, by the interval of the AUC."""
    return low >= WORTHLESS[0] and high <= WORTHLESS[1]


@dataclass(frozen=True)
class FirstLook(Look):
    """What a table of two classes shows before anything is fitted or measured.

    Attributes
    ----------
    found : str
        ``"one class"``; ``"wrong way"``: high scores go with negatives; ``"nothing"``: the scores
        are worth nothing; ``"no order"``: they neither rise nor fall with the share of positives,
        but it differs between them; ``"not told"``: too few rows to tell; ``"something"``.
    auc, low, high : float or None
        AUC of the scores, and the ends of its 99 % interval; None with one class.
    positives, negatives : float
        How many rows of equal weight each class is worth.
    """

    found: Found
    positives: float
    negatives: float

    @property
    def few(self) -> bool:
        """Whether a class has some rows, but fewer than ten."""
        return 0.0 < min(self.positives, self.negatives) < FEW - 1e-9

    def headline(self, names: LabelNames | None = None) -> str:
        """The first thing to say of the scores, in plain words; nothing where all is well."""
        names = names or LabelNames()
        if self.few and self.found in ("not told", "something"):
            return self.few_words(names)
        came = self.positives > 0.0
        labels = {"came": names.named(came), "absent": names.named(not came)}
        said = _SAID[self.found].format(figures=self.figures, n=names, **labels)
        return f"{self.few_words(names)} {said}" if self.few else said

    def few_words(self, names: LabelNames) -> str:
        """A warning that a class has fewer than ten rows."""
        positive = self.positives <= self.negatives
        count = min(self.positives, self.negatives)
        rows = f"{count:.3g} row{' is' if round(count, 2) == 1 else 's are'}"
        return (
            f"Only {rows} {names.named(positive)}: fewer than {FEW} of a class are too few to "
            "learn from or to judge by, so that all figures may be far off."
        )


_SAID = {
    "one class": "There is one class only: every row is {came}. Nothing can be learned of how "
    "{absent} scores, nor whether the scores tell the two apart.",
    "wrong way": "These scores run the wrong way: {figures}, so that high scores go with "
    "{n.other}. {n.question}",
    "nothing": "These scores say nothing about {n.about}: {figures}. Calibration cannot change "
    "that: all it can do is give every row about the same probability.",
    "no order": "These scores neither rise nor fall with {n.about}: {figures}. Yet its share "
    "differs from score to score, which only a method that may fall can use, such as ENIR or ABB.",
    "not told": "Whether these scores say anything about {n.about} cannot be told from these rows: "
    "{figures}.",
    "something": "",
}


def first_look(table: ScoreTable, weights: str = "importance") -> FirstLook:
    """Do the scores predict the labels, and which way do they run? All headlines come from here.

    Notes
    -----
    All claims are made from the 99 % interval of AUC (DeLong's variance, Wilson's form; ties count
    half, weights by (Σw)²/Σw²). "something": it begins above ½. "wrong way": it ends below ½ and
    begins below 0.45. "nothing": it lies between 0.45 and 0.55 and does not begin above ½, so that
    scores whose AUC is 0.55 or more are called worthless in 0.5 % of samples at most. If the share
    of positives differs between bins of scores all the same (χ², p < 0.001) it is "no order".
    Otherwise it cannot be told. O(D).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> first_look(ScoreTable.from_arrays(1 - p, y)).headline().split(":")[0]
    'These scores run the wrong way'
    >>> first_look(ScoreTable.from_arrays(rng.random(2000), y)).headline().split(":")[0]
    'These scores say nothing about the labels'
    >>> first_look(ScoreTable.from_arrays(p, y)).headline()
    ''
    """
    zeros, ones = class_sizes(table_in_rows(table, weights) if weights == "counts" else table)
    if not (table.total_positive and table.total_negative):
        return FirstLook("one class", None, None, None, ones, zeros)
    low, high = area_interval(table_in_rows(table, weights), LEVEL)
    return FirstLook(_finding(table, low, high), area(table), low, high, ones, zeros)


def _finding(table: ScoreTable, low: float, high: float) -> Found:
    """What the interval of the AUC says of the scores, in a word or two."""
    if low > 0.5:
        return "something"
    if runs_wrong(low, high):
        return "wrong way"
    if _shares_differ(table):
        return "no order"
    return "nothing" if worthless(low, high) else "not told"


def _shares_differ(table: ScoreTable) -> bool:
    """Whether the share of positives differs between bins of scores, by Pearson's χ² test."""
    size, rarest = table.effective_size, table.rarest
    count = int(min(BINS, size // BIN_ROWS, rarest // BIN_CASES))
    if count < 3:
        return False
    part = (np.cumsum(table.weight) - table.weight / 2) / table.total * count
    starts = np.flatnonzero(np.diff(np.minimum(part, count - 1).astype(np.intp), prepend=-1))
    n = np.add.reduceat(table.weight, starts) * (size / table.total)
    ones = np.add.reduceat(table.positive, starts) * (size / table.total)
    rate = float(ones.sum() / n.sum())
    statistic = float((((ones - n * rate) ** 2) / (n * rate * (1.0 - rate))).sum())
    return len(starts) > 2 and float(chdtrc(len(starts) - 1, statistic)) < ALPHA


# --- What must be known of the scores of several classes before anything else ---------------------


FoundInClasses = Literal[
    "one class", "wrong way", "swapped", "nothing", "no order", "not told", "something"
]

#: classes that a headline names
SHOWN = 8
#: with more classes than this no column is compared with another class
MOST_COMPARED = 200
#: the most scores that are looked at, and with more classes than `MOST_COMPARED`, but at least so
#: many rows: of more rows, every second, third, … is taken
MOST_SCORES, MOST_OF_MANY, LEAST_ROWS = 2**22, 2**19, 500
#: what swapping must gain in AUC, for each class
LEAST_GAIN = 0.05
#: the chance that any class is wrongly said to run the wrong way, and that any columns are wrongly
#: said to be swapped
CHANCE = 1e-3


class ClassNames(NamedTuple):
    """The names of the classes and of their columns in a headline."""

    labels: tuple[Any, ...] = ()
    label: str = ""
    columns: tuple[str, ...] = ()
    face: Face = "python"

    @classmethod
    def of(
        cls, labels: Iterable[Any], label: str = "", columns: Any = (), face: Face = "python"
    ) -> ClassNames:
        """The names, from the classes in the order of their columns."""
        return cls(tuple(plain(one) for one in labels), label, tuple(columns), face)

    @property
    def about(self) -> str:
        """The name of what scores should predict."""
        return f"`{self.label}`" if self.label else "the classes"

    def named(self, column: int) -> str:
        """The name of the class of a column."""
        return repr(self.labels[column]) if self.labels else f"number {column}"

    def column(self, number: int) -> str:
        """The name of a class's column."""
        if self.columns:
            return f"`{self.columns[number]}`"
        return f"the column of {self.named(number)}"

    @property
    def order(self) -> str:
        """Advice on how to say which column belongs to which class."""
        typed = "Say which is which: --score CLASS=COLUMN."
        written = "Columns must be in the order of the classes (sorted, or as classes= names them)."
        on_terminal = "On the command line, --score CLASS=COLUMN says which is which."
        if self.face == "check":
            return "Are these the columns that the calibrator was fitted to?"
        return {"python": written, "page": f"{written} {on_terminal}"}.get(self.face, typed)


@dataclass(frozen=True)
class ClassLook(Look):
    """What the scores of several classes show before anything is fitted or measured.

    Attributes
    ----------
    found : str
        ``"one class"``; ``"swapped"``: columns go with other classes than their own; ``"wrong
        way"``: rows of a class have low scores for it; ``"nothing"``: the scores are worth nothing;
        ``"no order"``: a class's own scores say nothing about it, but other columns do;
        ``"not told"``: too few rows to tell; ``"something"``.
    auc, low, high : float or None
        AUC of each class against the rest, averaged over the classes that came, and the ends of its
        99 % interval; None with one class. Where single classes run the wrong way, that of the
        first of them.
    classes : tuple of int
        The columns of the classes that run the wrong way, or are swapped; of one class only, that.
    belongs : tuple of int
        Of swapped columns: the class that each goes with.
    whole : bool
        Whether the wrong way is that of the classes on average, not of single ones.
    """

    found: FoundInClasses
    classes: tuple[int, ...] = ()
    belongs: tuple[int, ...] = ()
    whole: bool = False

    def headline(self, names: ClassNames | None = None) -> str:
        """The first thing to say of the scores, in plain words; nothing where all is well."""
        names = names or ClassNames()
        if self.found == "swapped":
            return self._swapped_in_words(names)
        first, *more = (names.named(column) for column in self.classes[:SHOWN] or (0,))
        found = "a class" if self.found == "wrong way" and not self.whole else self.found
        return _SAID_OF_CLASSES[found].format(
            figures=self.figures,
            n=names,
            first=first,
            column=names.column(self.classes[0] if self.classes else 0),
            others=f" The same holds for {', '.join(more)}." if more else "",
        )

    def _swapped_in_words(self, names: ClassNames) -> str:
        pairs = zip(self.classes[:SHOWN], self.belongs, strict=False)
        said = ", ".join(f"{names.column(a)} goes with {names.named(b)}" for a, b in pairs)
        more = ", …" if len(self.classes) > SHOWN else ""
        word = "swapped" if len(self.classes) == 2 else "mixed up"
        return f"Columns look {word}: {said}{more}. {names.order}"


#: "a class": single classes run the wrong way, the first of which is named
_SAID_OF_CLASSES = {
    "one class": "There is one class only: every row is {first}. Nothing can be learned of the "
    "others, nor whether the scores tell the classes apart.",
    "wrong way": "These scores run the wrong way: {figures}, the mean of each class against the "
    "rest. Rows mostly have low scores for their own class. Are the scores or the labels turned "
    "round?",
    "a class": "The scores of class {first} run the wrong way: {figures} against the rest. Its "
    "rows have lower scores in {column} than other rows.{others} {n.order}",
    "nothing": "These scores say nothing about {n.about}: {figures}, the mean of each class "
    "against the rest. Calibration cannot change that: all it can do is give every row about the "
    "same probabilities.",
    "no order": "No class's own scores say anything about it: {figures}, the mean of each class "
    "against the rest. Yet the scores differ between classes, which only a method of all columns "
    "can use, such as matrix scaling. {n.order}",
    "not told": "Whether these scores say anything about {n.about} cannot be told from these rows: "
    "{figures}, the mean of each class against the rest.",
    "something": "",
}


# --- the look -----------------------------------------------------------------------------------


def class_look(matrix: ScoreMatrix, weights: str = "importance") -> ClassLook:
    """Do the scores of each class predict it, and are columns swapped? All headlines of several
    classes come from here.

    Notes
    -----
    Claims are made from AUCs of each class against the rest (logits through the softmax) with
    DeLong's variance, in Wilson's form: of their mean over the k classes that came at 99 %, of
    single classes at 1 − 0.002/k. "wrong way": the interval ends below ½ and begins below 0.45.
    "swapped": another order of columns has an AUC higher by 0.05 for each class it moves, beyond
    chance at 0.1 % for all orders together (Bonferroni), and higher than turning scores round
    would give. "nothing": the interval of the mean lies between 0.45 and 0.55, no class's begins
    above ½, and no column differs between a class and the rest (p < 0.001 for all together), else
    "no order". O(nk log n), on 2²² scores at most; orders of columns up to 200 classes, and of
    more 2¹⁹ scores.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 2000)
    >>> y = (rng.random((2000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> class_look(ScoreMatrix(p, y)).headline()
    ''
    >>> class_look(ScoreMatrix(p[:, [1, 0, 2]], y)).headline(ClassNames.of("abc")).split(".")[0]
    "Columns look swapped: the column of 'a' goes with 'b', the column of 'b' goes with 'a'"
    >>> class_look(ScoreMatrix(rng.dirichlet([1, 1, 1], 2000), y)).found
    'nothing'
    """
    came = np.flatnonzero(matrix.class_weight > 0)
    if len(came) < 2:
        return ClassLook("one class", None, None, None, tuple(came.tolist()))
    seen = ClassAreas(rows_to_rank(matrix), weights)
    mean, low, high = seen.mean()
    average = ClassLook("not told", mean, low, high)
    if found := seen.swapped():
        return replace(average, found="swapped", classes=found[0], belongs=found[1])
    if runs_wrong(low, high):
        return replace(average, found="wrong way", whole=True)
    if wrong := [place for place, span in enumerate(seen.spans) if runs_wrong(*span)]:
        first = min(wrong, key=lambda place: seen.areas[place])
        order = [first, *(place for place in wrong if place != first)]
        columns = tuple(int(seen.came[place]) for place in order)
        return ClassLook("wrong way", seen.areas[first], *seen.span(first), classes=columns)
    if low > 0.5 or any(span[0] > 0.5 for span in seen.spans):
        return replace(average, found="something")
    if seen.differ():
        return replace(average, found="no order")
    return replace(average, found="nothing") if worthless(low, high) else average


# --- the AUCs of the classes --------------------------------------------------------------------


def rows_to_rank(matrix: ScoreMatrix) -> ScoreMatrix:
    """Enough of the rows for AUCs, with logits turned into logarithms of probabilities."""
    many = matrix.n_classes > MOST_COMPARED
    most = max((MOST_OF_MANY if many else MOST_SCORES) // matrix.n_classes, LEAST_ROWS)
    if len(matrix) > most:
        matrix = matrix.take(np.arange(0, len(matrix), -(-len(matrix) // most)))
    scores = on_host(matrix.scores)
    if matrix.looks_like_probabilities:
        return ScoreMatrix(scores, matrix.codes, matrix.weight)
    z = scores.astype(np.float64)
    z -= z.max(axis=1, keepdims=True)
    z -= np.log(np.exp(z).sum(axis=1, keepdims=True))
    return ScoreMatrix(z, matrix.codes, matrix.weight)


class SortedColumn:
    """A column of scores, sorted once, to be compared with any class."""

    def __init__(self, matrix: ScoreMatrix, column: int, rows: RowWeights) -> None:
        p = matrix.scores[:, column].astype(np.float64) + 0.0
        self.order = np.argsort(p)
        self.scores = p[self.order]
        new = np.append(True, self.scores[1:] != self.scores[:-1])
        self.starts = np.flatnonzero(new)
        self.cell = np.empty(len(p), dtype=np.intp)
        self.cell[self.order] = np.cumsum(new) - 1
        self.rows = rows

    def table(self, positive: Flags) -> ScoreTable:
        """The table of the column, in which some rows count as positive."""
        n0, n1, q0, q1 = (
            frozen(np.add.reduceat(column[self.order], self.starts))
            for column in self.rows.by_class(positive)
        )
        return ScoreTable(frozen(self.scores[self.starts]), n0, n1, q0, q1)

    def auc_influence(self, positive: Flags) -> Array:
        """How far each row moves the AUC of the column, where some rows count as positive."""
        table = self.table(positive)
        return auc_influence_of_cells(table, self.cell, positive, area(table))

    def by_class(self, codes: Index, k: int) -> Array:
        """The AUC of the column for each class against the rest.

        Ranks are among all rows: that a class's rows beat half of themselves is taken off.
        """
        weight = self.rows.weight
        mass = np.add.reduceat(weight[self.order], self.starts)
        below = (np.cumsum(mass) - mass / 2)[self.cell]
        total = np.bincount(codes, weight, minlength=k)
        ranks = np.bincount(codes, weight * below, minlength=k)
        with np.errstate(divide="ignore", invalid="ignore"):  # a class with all or no weight
            return np.asarray((ranks - total**2 / 2) / (total * (weight.sum() - total)))


class ClassAreas:
    """The AUC of each class by its own column, and by the columns of the other classes."""

    def __init__(self, matrix: ScoreMatrix, weights: str) -> None:
        self.matrix = matrix
        rows = RowWeights.of(matrix.weight, len(matrix), weights)
        unit = float(rows.weight.max())  # squares of very small weights would leave the floats
        square = unit if weights == "counts" else unit * unit
        self.rows = RowWeights(rows.weight / unit, rows.squares / square)
        self.size = rows.size
        self.came = np.flatnonzero(matrix.class_weight > 0)
        self.areas: list[float] = []
        self.spans: list[Span] = []
        self.influence = np.zeros(len(matrix))
        self.cross: list[Array] = []
        for number in self.came.tolist():
            column, own = SortedColumn(matrix, number, self.rows), matrix.codes == number
            table = column.table(own)
            self.areas.append(area(table))
            self.spans.append(area_interval(table, 1.0 - 2.0 * CHANCE / len(self.came)))
            moves = auc_influence_of_cells(table, column.cell, own, self.areas[-1])
            self.influence += moves / len(self.came)
            if len(self.came) <= MOST_COMPARED:
                self.cross.append(column.by_class(matrix.codes, matrix.n_classes)[self.came])

    def span(self, place: int) -> Span:
        """The 99 % interval of the AUC of one class."""
        number = int(self.came[place])
        table = SortedColumn(self.matrix, number, self.rows).table(self.matrix.codes == number)
        return area_interval(table, LEVEL)

    def mean(self) -> tuple[float, float, float]:
        """The mean AUC of the classes, and its interval."""
        value = float(np.mean(self.areas))
        if self.size <= 1.0:
            return value, 0.0, 1.0
        variance = self.rows.error(self.influence) ** 2
        low, high = wilson_area(value, variance, self.size / 2, self.size / 2, LEVEL)
        return value, low, high

    def swapped(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """The columns that surely belong to other classes, and the classes they belong to; None for
        none."""
        k = len(self.came)
        if not self.cross or self.size <= 1.0:
            return None
        by = np.column_stack(self.cross)  # class, column
        if not np.isfinite(by).all() or (by.argmax(axis=1) == np.arange(k)).all():
            return None
        from scipy.optimize import linear_sum_assignment

        _, column_of = linear_sum_assignment(by, maximize=True)
        found: list[tuple[int, int]] = []
        for cycle in _cycles(column_of.tolist()):
            if self._beyond_chance(cycle, by):
                found += [(column, one) for one, column in cycle]
        pairs = sorted((int(self.came[a]), int(self.came[b])) for a, b in found)
        return (tuple(a for a, _ in pairs), tuple(b for _, b in pairs)) if pairs else None

    def _beyond_chance(self, cycle: list[tuple[int, int]], by: Array) -> bool:
        """Whether the classes of a cycle are surely predicted better by each other's columns."""
        k, m = len(self.came), len(cycle)
        new = [by[one, column] for one, column in cycle]
        old = [by[one, one] for one, _ in cycle]
        gain = float(np.sum(new) - np.sum(old))
        if gain < LEAST_GAIN * m or np.sum(new) <= np.sum([max(a, 1.0 - a) for a in old]):
            return False
        moved = np.zeros(len(self.matrix))
        for one, column in cycle:
            own = self.matrix.codes == self.came[one]
            for place, sign in ((column, 1.0), (one, -1.0)):
                swapped = SortedColumn(self.matrix, int(self.came[place]), self.rows)
                moved += sign * swapped.auc_influence(own)
        # all cycles of so many of the classes, and all lengths
        count = math.lgamma(k + 1) - math.lgamma(k - m + 1) - math.log(m) + math.log(k - 1)
        z = -float(ndtri_exp(math.log(CHANCE) - count))
        return gain > z * self.rows.error(moved)

    def differ(self) -> bool:
        """Whether any column differs between any class and the rest, by Wilcoxon's test."""
        if not self.cross:
            return False
        total, squares = (
            np.bincount(self.matrix.codes, column, minlength=self.matrix.n_classes)[self.came]
            for column in (self.rows.weight, self.rows.squares)
        )
        with np.errstate(divide="ignore", invalid="ignore"):  # a class has all or no weight
            size = total**2 / squares
            rest = (total.sum() - total) ** 2 / (squares.sum() - squares)
            error = np.sqrt((size + rest + 1.0) / (12.0 * size * rest))
            z = np.abs(np.column_stack(self.cross) - 0.5) / error[:, None]
        least = -float(ndtri_exp(math.log(ALPHA / 2 / z.size)))
        return bool((z > least)[size >= 10.0].any())


def _cycles(column_of: list[int]) -> list[list[tuple[int, int]]]:
    """The cycles in which columns are exchanged, as pairs of a class and its column."""
    left, found = {one for one, column in enumerate(column_of) if one != column}, []
    while left:
        one, cycle = min(left), []
        while one in left:
            left.remove(one)
            cycle.append((one, column_of[one]))
            one = column_of[one]
        found.append(cycle)
    return found
