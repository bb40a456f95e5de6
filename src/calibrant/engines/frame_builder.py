"""A lazy frame that gets helper columns while an expression is written for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.data.joining import Column, left_join
from calibrant.engines.backends import compute, literals_lose_bits, most_branches
from calibrant.plan.borders import Regions
from calibrant.plan.grids import Grid, listed

__all__ = ["FrameBuilder"]

Index = NDArray[np.int64]


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

    def constant(self, value: float) -> nw.Expr:
        """A double to the last bit; as text where the engine would read a decimal number."""
        if self._inexact:
            return nw.lit(repr(float(value))).cast(nw.Float64)
        return nw.lit(float(value))

    def add(self, expression: nw.Expr) -> str:
        """The name of a new column that holds the expression, so that it is computed once."""
        name = self._name()
        self.frame = self.frame.with_columns(expression.alias(name))
        return name

    def keep(self, expression: nw.Expr) -> nw.Expr:
        """The expression as a column of its own."""
        return nw.col(self.add(expression))

    def ln(self, expression: nw.Expr) -> nw.Expr:
        """The natural logarithm of positive numbers."""
        return self._by("ln", expression)

    def _by(self, function: str, expression: nw.Expr) -> nw.Expr:
        column, name = self.add(expression), self._name()
        self.frame = compute(self.frame, function, column, name)
        return nw.col(name)

    def cell(self, column: str, grid: Grid) -> nw.Expr:
        """The cells of a column."""
        if grid.cells is not None:
            if grid.first:
                column = self.add(nw.col(column) - self.constant(grid.first))
            name = self._name()
            self.frame = grid.cells.add_to(self.frame, column, name)
            return nw.col(name)
        first, last = self.constant(grid.first), self.constant(grid.last)
        # NULL may find a row here; its values are not used in the end
        t = nw.min_horizontal(nw.max_horizontal(nw.col(column), first), last)
        if (grid.first, grid.last) != (0.0, 1.0):
            t = (t - first) * self.constant(grid.factor)
        for _ in range(grid.roots):
            t = self._by("sqrt", t)
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
        self.frame = left_join(self.frame, whole, on)
        return {name: nw.col(new) for name, new in named.items()}

    def within(self, column: str, low: nw.Expr, high: nw.Expr) -> None:
        """Of the rows that a join has made of one, keep the one whose interval holds the column."""
        value = nw.col(column)
        self.frame = self.frame.filter(low.is_null() | ((value >= low) & (value <= high)))

    def _name(self) -> str:
        self._made += 1
        return f"{self._prefix}{self._made}"
