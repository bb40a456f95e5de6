"""What must be known of the scores of several classes before anything else.

Do they say anything, does a class's own column run the wrong way, are columns swapped?
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.to_numpy import plain
from calibrant.metrics.class_areas import ClassAreas, rows_to_rank
from calibrant.metrics.first_look import Face, Look, runs_wrong, worthless

Found = Literal["one class", "wrong way", "swapped", "nothing", "no order", "not told", "something"]

#: classes that a headline names
SHOWN = 8


class ClassNames(NamedTuple):
    """How a headline names the classes, their columns and that of the labels."""

    labels: tuple[Any, ...] = ()
    label: str = ""
    columns: tuple[str, ...] = ()
    face: Face = "python"

    @classmethod
    def of(
        cls, labels: Iterable[Any], label: str = "", columns: Any = (), face: Face = "python"
    ) -> ClassNames:
        """The names, from the classes in the order of the columns."""
        return cls(tuple(plain(one) for one in labels), label, tuple(columns), face)

    @property
    def about(self) -> str:
        """What scores should tell."""
        return f"`{self.label}`" if self.label else "the classes"

    def named(self, column: int) -> str:
        """A class."""
        return repr(self.labels[column]) if self.labels else f"number {column}"

    def column(self, number: int) -> str:
        """The column of a class."""
        if self.columns:
            return f"`{self.columns[number]}`"
        return f"the column of {self.named(number)}"

    @property
    def order(self) -> str:
        """How to say which column is which."""
        typed = "Say which is which: --score CLASS=COLUMN."
        written = "Columns must be in the sorted order of the classes."
        on_terminal = "On the command line, --score CLASS=COLUMN says which is which."
        if self.face == "check":
            return "Are these the columns that the calibrator was fitted to?"
        both = {"command line": typed, "python": written, "page": f"{written} {on_terminal}"}
        return both[self.face]


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

    found: Found
    classes: tuple[int, ...] = ()
    belongs: tuple[int, ...] = ()
    whole: bool = False

    def headline(self, names: ClassNames | None = None) -> str:
        """What is to be said first, in plain words; nothing where all is well."""
        names = names or ClassNames()
        return _SAID[self.found](self, names)


# --- words --------------------------------------------------------------------------------------


def _one_class(look: ClassLook, names: ClassNames) -> str:
    return (
        f"There is one class only: every row is {names.named(look.classes[0])}. Nothing can be "
        "learned of the others, nor whether the scores tell the classes apart."
    )


def _wrong_way(look: ClassLook, names: ClassNames) -> str:
    if look.whole:
        return (
            f"These scores run the wrong way: {look.figures}, the mean of each class against the "
            "rest. Rows mostly have low scores for their own class. Are the scores or the labels "
            "turned round?"
        )
    first, *more = (names.named(column) for column in look.classes[:SHOWN])
    others = f" The same holds for {', '.join(more)}." if more else ""
    return (
        f"The scores of class {first} run the wrong way: {look.figures} against the rest. Its rows "
        f"have lower scores in {names.column(look.classes[0])} than other rows.{others} "
        f"{names.order}"
    )


def _swapped(look: ClassLook, names: ClassNames) -> str:
    pairs = zip(look.classes[:SHOWN], look.belongs, strict=False)
    said = ", ".join(f"{names.column(a)} goes with {names.named(b)}" for a, b in pairs)
    more = ", …" if len(look.classes) > SHOWN else ""
    word = "swapped" if len(look.classes) == 2 else "mixed up"
    return f"Columns look {word}: {said}{more}. {names.order}"


def _nothing(look: ClassLook, names: ClassNames) -> str:
    return (
        f"These scores say nothing about {names.about}: {look.figures}, the mean of each class "
        "against the rest. Calibration cannot change that: all it can do is give every row about "
        "the same probabilities."
    )


def _no_order(look: ClassLook, names: ClassNames) -> str:
    return (
        f"No class's own scores say anything about it: {look.figures}, the mean of each class "
        "against the rest. Yet the scores differ between classes, which only a method of all "
        f"columns can use, such as matrix scaling. {names.order}"
    )


def _not_told(look: ClassLook, names: ClassNames) -> str:
    return (
        f"Whether these scores say anything about {names.about} cannot be told from these rows: "
        f"{look.figures}, the mean of each class against the rest."
    )


_SAID: dict[str, Callable[[ClassLook, ClassNames], str]] = {
    "one class": _one_class,
    "wrong way": _wrong_way,
    "swapped": _swapped,
    "nothing": _nothing,
    "no order": _no_order,
    "not told": _not_told,
    "something": lambda look, names: "",
}


# --- the look -----------------------------------------------------------------------------------


def class_look(matrix: ScoreMatrix, weights: str = "importance") -> ClassLook:
    """Look at direction and separation of each class: the one place that decides the headline.

    Notes
    -----
    Claims are made from AUCs of each class against the rest (logits through the softmax) with
    DeLong's variance, in Wilson's form: of their mean over the k classes that came at 99 %, of
    single classes at 1 − 0.002/k. "wrong way": the interval ends below ½ and begins below 0.45.
    "swapped": another order of columns has an AUC higher by 0.05 for each class it moves, beyond
    chance at 0.1 % for all orders together (Bonferroni), and higher than turning scores round
    would give. "nothing": the interval of the mean lies between 0.45 and 0.55, no class's begins
    above ½, and no column differs between a class and the rest (p < 0.001 for all together), else
    "no order". O(nk log n), on 2²² scores at most; orders of columns up to 200 classes.

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
