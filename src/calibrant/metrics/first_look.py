"""What must be known of scores before anything else: both classes, their direction, their worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import chdtrc

from calibrant.data.score_table import ScoreTable
from calibrant.data.to_numpy import plain
from calibrant.data.weighing import table_in_rows
from calibrant.metrics.interval_formulas import area_interval
from calibrant.metrics.ranking import area
from calibrant.metrics.weighted_cells import class_sizes
from calibrant.shell_words import quoted

#: the level of the interval of AUC behind all claims: each end fails in 0.5 % of samples at most
LEVEL = 0.99
#: AUCs between these are worth nothing in practice
WORTHLESS = (0.45, 0.55)
#: fewer rows of a class are too few to learn from, or to judge by
FEW = 10
#: bins and rows of a bin (of each class) for the question whether the share differs at all, and
#: the chance that it seems to where it does not
BINS, BIN_ROWS, BIN_CASES, ALPHA = 20, 50.0, 5.0, 1e-3

Face = Literal["python", "command line", "page", "check"]
Found = Literal["one class", "wrong way", "nothing", "no order", "not told", "something"]


class LabelNames(NamedTuple):
    """How a headline names the labels, and what it asks where scores run the wrong way.

    ``label`` is the name of their column. The two labels are None where they are not known.
    ``face`` is where the headline is read: a page may be read by users of either.
    """

    label: str = ""
    positive: Any = None
    negative: Any = None
    face: Face = "python"

    @classmethod
    def of(cls, classes: Any, pos_label: Any, label: str = "", face: Face = "python") -> LabelNames:
        """The names, from the two classes and the one that is positive.

        >>> LabelNames.of(["no", "yes"], "yes").question
        "Did you mean pos_label='no'?"
        """
        positive = plain(pos_label)
        others = [plain(one) for one in classes if plain(one) != positive]
        return cls(label, positive, others[0] if len(others) == 1 else None, face)

    @property
    def about(self) -> str:
        """What scores should tell."""
        return f"`{self.label}`" if self.label else "the labels"

    @property
    def question(self) -> str:
        """What may have gone wrong where scores run the wrong way: mostly the other label was meant
        as the positive one; in a check of new rows, something was turned round."""
        if self.face == "check":
            return "Are the labels or the scores turned round?"
        if self.negative is None:
            return "Did you mean the other label as pos_label?"
        typed = f"--pos-label {quoted(str(self.negative))}"
        written = f"pos_label={self.negative!r}"
        options = {"command line": typed, "python": written, "page": f"{written} ({typed})"}
        return f"Did you mean {options[self.face]}?"

    @property
    def other(self) -> str:
        """What high scores go with if they run the wrong way."""
        return "negatives" if self.negative is None else repr(self.negative)

    def named(self, positive: bool) -> str:
        """One of the labels."""
        label = self.positive if positive else self.negative
        word = "positive" if positive else "negative"
        return word if label is None else repr(label)


@dataclass(frozen=True)
class Look:
    """What is found before anything is fitted or measured, and the AUC behind it."""

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
        """Whether the scores are worth calibrating, as far as can be seen."""
        return self.found == "something" and not self.few

    @property
    def useless(self) -> bool:
        """Whether no calibration is worth anything before something else is put right."""
        return self.found not in ("something", "not told")

    @property
    def unproven(self) -> bool:
        """Whether the scores may be worth nothing, so that no figure of a map is praised."""
        return self.found != "something"

    @property
    def figures(self) -> str:
        """AUC and its interval, in as many digits as tell them apart; nothing without an AUC.

        >>> Look("not told", 0.5234, 0.48, 0.56).figures
        'AUC 0.52 (99 % interval 0.48 to 0.56)'
        """
        if self.auc is None or self.low is None or self.high is None:
            return ""
        digits = 2 if self.high - self.low >= 0.02 else 4
        ends = f"{self.low:.{digits}f} to {self.high:.{digits}f}"
        return f"AUC {self.auc:.{digits}f} ({100 * LEVEL:g} % interval {ends})"


def runs_wrong(low: float, high: float) -> bool:
    """Whether scores run the wrong way, by the interval of their AUC."""
    return high < 0.5 and low < WORTHLESS[0]


def worthless(low: float, high: float) -> bool:
    """Whether scores are worth nothing in practice, by the interval of their AUC."""
    return low >= WORTHLESS[0] and high <= WORTHLESS[1]


@dataclass(frozen=True)
class FirstLook(Look):
    """What a table shows before anything is fitted or measured.

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
        """Whether a class has rows, but fewer than ten."""
        return 0.0 < min(self.positives, self.negatives) < FEW - 1e-9

    def headline(self, names: LabelNames | None = None) -> str:
        """What is to be said first, in plain words; nothing where all is well."""
        names = names or LabelNames()
        if self.few and self.found in ("not told", "something"):
            return self.few_words(names)
        came = self.positives > 0.0
        labels = {"came": names.named(came), "absent": names.named(not came)}
        said = _SAID[self.found].format(figures=self.figures, n=names, **labels)
        return f"{self.few_words(names)} {said}" if self.few else said

    def few_words(self, names: LabelNames) -> str:
        """What a class of fewer than ten rows means."""
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
    """Look at direction and separation: the one place that decides what the headline is.

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
    return FirstLook(_found(table, low, high), area(table), low, high, ones, zeros)


def _found(table: ScoreTable, low: float, high: float) -> Found:
    if low > 0.5:
        return "something"
    if runs_wrong(low, high):
        return "wrong way"
    if _differs(table):
        return "no order"
    return "nothing" if worthless(low, high) else "not told"


def _differs(table: ScoreTable) -> bool:
    """Whether bins of equal weight have different shares of positives, by Pearson's χ²."""
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
