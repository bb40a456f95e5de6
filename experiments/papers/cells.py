"""A table as cells: each is computed once, kept at once, and not computed again.

A cell is one line of a CSV file: its keys, the figures found, and the CPU seconds they took. The
line is written when the cell is done, so that an interrupted run loses only the cells at work.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import pandas as pd

__all__ = ["RUN", "Cell", "Claim", "Journal", "Paper", "Row", "Table", "repeated", "texts"]

Cell = dict[str, str | int]
Row = Mapping[str, float | str | int]

SECONDS = "seconds"
#: how the text of a claim begins that is another reading, or a part, of the one before
READING = "… "
#: the run that a cell was computed in; cells computed before runs were recorded have none
RUN = "run"


def repeated(times: int, **keys: Iterable[str | int]) -> list[Cell]:
    """Every combination of the keys with seeds 0, 1, …: all of a repetition, then the next.

    >>> repeated(2, model=["NB", "LR"])[1:3]
    [{'model': 'LR', 'seed': 0}, {'model': 'NB', 'seed': 1}]
    """
    every = [dict(zip(keys, values, strict=True)) for values in product(*keys.values())]
    return [{**cell, "seed": seed} for seed in range(times) for cell in every]


@dataclass(frozen=True)
class Table:
    """A table (or figure) of a paper: its cells, how one is computed, how all are shown.

    ``cells(quick)`` lists the cells of a quick or of a full run, the former among the latter, all
    with the same keys. ``run(**cell)`` gives one row of figures, the same for the same cell.
    ``page`` makes Markdown of the rows that there are. ``repeats`` is the key that only repeats,
    ``work`` the one (if any) that the time of a cell grows with, ``times`` are endings of figures
    that are times, which no other run gives again.
    """

    name: str
    title: str
    cells: Callable[[bool], list[Cell]]
    run: Callable[..., Row]
    page: Callable[[pd.DataFrame], str]
    repeats: str = "seed"
    work: str = ""
    times: tuple[str, ...] = ()
    figures: Callable[[pd.DataFrame, Path], list[str]] | None = None

    @property
    def keys(self) -> list[str]:
        return list(self.cells(True)[0])


@dataclass(frozen=True)
class Claim:
    """What a paper says, its figures, ours, and whether it holds (None: cannot be judged).

    ``tables`` names those whose cells ours rest on, ``selection`` which part of them is looked at.
    A text that begins with … is another reading, or a part, of the claim before it.
    """

    text: str
    published: str
    ours: str
    holds: bool | None
    note: str = ""
    tables: tuple[str, ...] = ()
    selection: str = ""

    @property
    def is_reading(self) -> bool:
        """Whether this is the claim before in other words: shown, but not counted."""
        return self.text.startswith(READING)

    def resting_on(self, *tables: str, selection: str = "") -> Claim:
        """The same claim with what it rests on."""
        return replace(self, tables=tables, selection=selection or self.selection)


@dataclass(frozen=True)
class Paper:
    """A paper: its tables, and its claims as judged by the results of them, by table."""

    name: str
    title: str
    tables: tuple[Table, ...]
    claims: Callable[[dict[str, pd.DataFrame]], list[Claim]]
    notes: str

    def table(self, name: str) -> Table:
        found = {table.name: table for table in self.tables}
        if name not in found:
            raise KeyError(f"{self.name} has no table {name!r}; it has {', '.join(found)}")
        return found[name]


class Journal:
    """The finished cells of a table, in a file that grows by a line for each."""

    def __init__(self, path: Path, keys: list[str]) -> None:
        self.path, self.keys = path, keys
        self.columns: list[str] = []
        self.rows = self._read()

    def _read(self) -> list[dict[str, str]]:
        """What is there; a line that an interrupted run left half-written is dropped."""
        if not self.path.is_file():
            return []
        text = self.path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        rows = list(csv.DictReader(io.StringIO(whole)))
        missing = [key for key in self.keys if rows and key not in rows[0]]
        if missing:
            raise ValueError(
                f"{self.path} must have the columns {', '.join(self.keys)}, but lacks "
                f"{', '.join(missing)}: it is of another version of the table. Remove it, or write "
                "the results elsewhere (--into)."
            )
        self.columns = list(rows[0]) if rows else []
        if whole != text:
            self._write(rows)
        return rows

    def name(self, cell: Mapping[str, object]) -> tuple[str, ...]:
        return tuple(str(cell[key]) for key in self.keys)

    def todo(self, cells: Iterable[Cell], stale: Container[str] = ()) -> list[Cell]:
        """The cells that are not there yet, or of runs that are stale."""
        done = {self.name(row) for row in self.rows if row.get(RUN, "") not in stale}
        return [cell for cell in cells if self.name(cell) not in done]

    def add(self, cell: Cell, row: Row, seconds: float, run: str = "") -> None:
        """Keep a finished cell: one line more, or the file anew where it brings new columns."""
        line = {
            **{key: str(value) for key, value in cell.items()},
            **texts(row),
            **({RUN: run} if run else {}),
            SECONDS: f"{seconds:.3g}",
        }
        kept = [row for row in self.rows if self.name(row) != self.name(cell)]
        again = len(kept) < len(self.rows)  # of an older run: the new line takes its place
        self.rows = [*kept, line]
        if self.path.is_file() and not again and set(line) <= set(self.columns):
            with self.path.open("a", encoding="utf-8", newline="") as file:
                file.write(self._lines([line], header=False))
        else:
            self._write(self.rows)

    def keep(self, wanted: Callable[[Mapping[str, str]], bool]) -> None:
        """Forget the lines that are not wanted."""
        rows = [row for row in self.rows if wanted(row)]
        if len(rows) < len(self.rows):
            self.rows = rows
            self._write(rows)

    def sort(self, cells: Iterable[Cell]) -> None:
        """Bring the lines into the order of the table, whatever the order they were found in."""
        place = {self.name(cell): i for i, cell in enumerate(cells)}
        rows = sorted(self.rows, key=lambda row: place.get(self.name(row), len(place)))
        if rows != self.rows:
            self.rows = rows
            self._write(rows)

    def frame(self, cells: Iterable[Cell]) -> pd.DataFrame:
        """The rows of these cells in their order, with numbers as numbers.

        Lines of cells that the table does not have any more stay in the file, but not here.
        """
        if not self.rows:
            return pd.DataFrame(columns=self.keys)
        place = {self.name(row): i for i, row in enumerate(self.rows)}
        names = map(self.name, cells)
        found = pd.read_csv(self.path).drop(columns=RUN, errors="ignore")
        return found.iloc[[place[name] for name in names if name in place]].reset_index(drop=True)

    def _write(self, rows: list[dict[str, str]]) -> None:
        found = dict.fromkeys([*self.keys, *(name for row in rows for name in row)])
        last = [name for name in (RUN, SECONDS) if name in found]
        self.columns = [name for name in found if name not in last] + last
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(self._lines(rows, header=True), encoding="utf-8", newline="")
        os.replace(part, self.path)

    def _lines(self, rows: list[dict[str, str]], header: bool) -> str:
        out = io.StringIO()
        writer = csv.DictWriter(out, self.columns, restval="", lineterminator="\n")
        if header:
            writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()


def texts(row: Row) -> dict[str, str]:
    """Figures as they are kept: six digits are more than any table shows."""
    return {key: value if isinstance(value, str) else f"{value:.6g}" for key, value in row.items()}
