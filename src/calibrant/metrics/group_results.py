"""What `multicalibration` returns: the groups of rows, ranked, and a table of the worst."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from calibrant.data.frozen import Frozen
from calibrant.result_tables import (
    PlainFields,
    PrintsAsTable,
    Readable,
    ResultTable,
    TableColumn,
    TableRow,
    counted,
    frame_of,
    short_value,
    shown_value,
)

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
        """By how much predictions are off at least; 0 where the interval holds 0."""
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
        """The groups that are off beyond chance and say something of their own, ranked."""
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
        columns = [
            TableColumn("group", "left", widest=44),
            TableColumn("weight" if self._weighted else "rows", may_break=False, expendable=0),
            TableColumn("predicted", may_break=False),
            TableColumn("observed", may_break=False),
            TableColumn("difference", may_break=False),
            TableColumn(f"{100 * self.level:g} % interval", expendable=1),
            TableColumn("p", may_break=False),
        ]
        return ResultTable(
            columns, [TableRow(self._cells(one)) for one in self.shown], self._below()
        )

    @property
    def _weighted(self) -> bool:
        return any(one.weight != one.rows for one in self.groups)

    def _cells(self, one: GroupError) -> tuple[str, ...]:
        return (
            one.name,
            counted(round(one.weight, 2)),
            shown_value(one.predicted),
            shown_value(one.observed),
            _signed(one.difference),
            f"{_signed(one.low)} to {_signed(one.high)}",
            short_value(one.p_value),
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


def _signed(value: float) -> str:
    return f"+{shown_value(value)}" if value > 0.0 else shown_value(value)
