"""A lazy frame that gets helper columns while an expression is written for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.data.engine_frames import Column, compute, left_join
from calibrant.engines.backends import literals_lose_bits, most_branches, set_apart
from calibrant.plan.borders import Regions
from calibrant.plan.grids import Grid, listed

Index = NDArray[np.int64]
Lazy = nw.LazyFrame[Any]


def between_ends(value: nw.Expr, least: nw.Expr, most: nw.Expr) -> nw.Expr:
    """The value moved into an interval; what becomes of NULL is up to the engine."""
    return nw.min_horizontal(nw.max_horizontal(value, least), most)


def or_one(value: nw.Expr) -> nw.Expr:
    """The value where it is above zero, else 1: a divisor."""
    return nw.when(value > 0.0).then(value).otherwise(nw.lit(1.0))


class _Columns(NamedTuple):
    """A change of the frame: new columns, and by which function; None for expressions."""

    function: str | None
    made: dict[str, Any]


#: a change of the frame: new columns, or anything else
Change = _Columns | Callable[[Lazy], Lazy]


class FrameBuilder:
    """A lazy frame that grows helper columns while an expression is written."""

    def __init__(self, frame: nw.LazyFrame[Any]) -> None:
        self.frame = frame
        self._inexact = literals_lose_bits(frame)
        self.most_branches = most_branches(frame)
        self._prefix = "__calibrant_"
        while any(name.lower().startswith(self._prefix) for name in frame.collect_schema().names()):
            self._prefix += "_"
        self._made = 0
        self._waiting: list[Change] | None = None

    def side_by_side(self, writers: Sequence[Callable[[], nw.Expr]]) -> list[nw.Expr]:
        """What each of the writers returns, which must not depend on one another.

        Their first changes of the frame are made together, then their second ones, and so on: for
        many columns engines need few steps, each of which they check from the beginning.
        """
        found: list[nw.Expr] = []
        lists: list[list[Change]] = []
        for write in writers:
            self._waiting = []
            lists.append(self._waiting)
            found.append(write())
        self._waiting = None
        for step in zip_longest(*lists):
            together: dict[str | None, dict[str, Any]] = {}
            for change in step:
                if isinstance(change, _Columns):
                    together.setdefault(change.function, {}).update(change.made)
            for function, made in together.items():
                self._do(_Columns(function, made))
            for change in step:
                if change is not None and not isinstance(change, _Columns):
                    self._do(change)
        return found

    def _do(self, change: Change) -> None:
        """Change the frame, or remember to."""
        if self._waiting is not None:
            self._waiting.append(change)
        elif not isinstance(change, _Columns):
            self.frame = change(self.frame)
        elif change.function is None:
            named = (own.alias(name) for name, own in change.made.items())
            self.frame = self.frame.with_columns(*named)
        else:
            self.frame = compute(self.frame, change.function, change.made)

    def constant(self, value: float) -> nw.Expr:
        """A double to the last bit; as text where the engine would read a decimal number."""
        if self._inexact:
            return nw.lit(repr(float(value))).cast(nw.Float64)
        return nw.lit(float(value))

    def add(self, expression: nw.Expr) -> str:
        """The name of a new column that holds the expression, so that it is computed once."""
        return self.add_all([expression])[0]

    def add_all(self, expressions: Sequence[nw.Expr]) -> list[str]:
        """The same of several expressions, in one step."""
        names = [self._name() for _ in expressions]
        self._do(_Columns(None, dict(zip(names, expressions, strict=True))))
        return names

    def add_apart(self, expressions: Sequence[nw.Expr]) -> list[str]:
        """The same where each of them is made of many columns and read by many, see `set_apart`."""
        into = {name: self._name() for name in self.add_all(expressions)}
        self._do(lambda frame: set_apart(frame, into))
        return list(into.values())

    def keep(self, expression: nw.Expr) -> nw.Expr:
        """The expression as a column of its own."""
        return nw.col(self.add(expression))

    def keep_all(self, expressions: Sequence[nw.Expr]) -> list[nw.Expr]:
        """Several expressions, each as a column of its own."""
        return [nw.col(name) for name in self.add_all(expressions)]

    def compute(self, change: Callable[..., Lazy], count: int) -> list[nw.Expr]:
        """Columns that a function adds to the frame: it is called with the frame and ``new``, their
        names."""
        new = [self._name() for _ in range(count)]
        self._do(lambda frame: change(frame, new=new))
        return [nw.col(name) for name in new]

    def ln(self, expression: nw.Expr) -> nw.Expr:
        """The natural logarithm of positive numbers."""
        return self.ln_all([expression])[0]

    def ln_all(self, expressions: Sequence[nw.Expr]) -> list[nw.Expr]:
        """The natural logarithms of several columns of positive numbers."""
        return self._by("ln", expressions)

    def _by(self, function: str, expressions: Sequence[nw.Expr]) -> list[nw.Expr]:
        into = {column: self._name() for column in self.add_all(expressions)}
        self._do(_Columns(function, into))
        return [nw.col(name) for name in into.values()]

    def cell(self, column: str, grid: Grid) -> nw.Expr:
        """The cells of a column."""
        cells = grid.cells
        if cells is not None:
            if grid.first:
                column = self.add(nw.col(column) - self.constant(grid.first))
            name, chooser = self._name(), column
            self._do(lambda frame: cells.add_to(frame, chooser, name))
            return nw.col(name)
        first, last = self.constant(grid.first), self.constant(grid.last)
        # NULL may find a row here; its values are not used in the end
        t = between_ends(nw.col(column), first, last)
        if (grid.first, grid.last) != (0.0, 1.0):
            t = (t - first) * self.constant(grid.factor)
        for _ in range(grid.roots):
            [t] = self._by("sqrt", [t])
        return (t * float(grid.count)).floor().cast(nw.Int32)

    def listed(self, grid: Grid, found: Regions) -> tuple[Index, Index]:
        """Regions by cell, see `plan.grids.listed`. Where an engine loses bits, each is listed for
        the neighbouring cells as well, since a score may fall into one of them."""
        beside = int(self._inexact and grid.cells is not None)
        return listed(grid, found.low, found.high, beside)

    def look_up(
        self, key: nw.Expr, values: Column, table: Mapping[str, Column]
    ) -> dict[str, nw.Expr]:
        """The columns of a table, joined where its ``values`` equal the rows' ``key``."""
        on = self.add(key)
        named = {name: self._name() for name in table}
        whole = {on: values} | {named[name]: column for name, column in table.items()}
        self._do(lambda frame: left_join(frame, whole, on))
        return {name: nw.col(new) for name, new in named.items()}

    def within(self, column: str, low: nw.Expr, high: nw.Expr) -> None:
        """Of the rows that a join has made of one, keep the one whose interval holds the column."""
        value = nw.col(column)
        inside = low.is_null() | ((value >= low) & (value <= high))
        self._do(lambda frame: frame.filter(inside))

    def _name(self) -> str:
        self._made += 1
        return f"{self._prefix}{self._made}"
