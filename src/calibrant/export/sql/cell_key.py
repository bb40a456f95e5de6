"""The cell of a score, only by operations that IEEE 754 fixes to the last bit."""

from __future__ import annotations

from calibrant.data.cells import HALF, LEAST, Cells
from calibrant.export.sql.dialects import Dialect
from calibrant.export.sql.layout import case, inside
from calibrant.plan.grids import Grid

#: scores further out than so many spreads count as this far out: so no product overflows
FAR = 2.0**60


def cell(grid: Grid, score: str, dialect: Dialect) -> str:
    """The cell of a score as SQL. NULL and NaN get some cell, but match no piece in it.

    >>> from calibrant.export.sql.dialects import dialect_of
    >>> cell(Grid(4), "s", dialect_of("duckdb"))
    'CAST(FLOOR(4e0 * CASE WHEN s <= 0e0 THEN 0e0 WHEN s < 1e0 THEN s ELSE 1e0 END) AS INTEGER)'
    """
    if grid.cells is not None:
        return inside("", dialect.cells(_place(grid, grid.cells, score, dialect)), "")
    number = dialect.number
    factor = grid.factor
    along, end = score, (grid.last - grid.first) * factor
    if (grid.first, factor) != (0.0, 1.0):
        along = f"({score} - {_negative(number(grid.first))}) * {number(factor)}"
    t = _moved(score, along, (grid.first, 0.0), (grid.last, end), dialect)
    for _ in range(grid.roots):
        t = f"SQRT({t})"
    return dialect.cells(f"{number(float(grid.count))} * {t}")


def _negative(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _moved(
    score: str,
    between: str,
    low: tuple[float, float],
    high: tuple[float, float],
    dialect: Dialect,
) -> str:
    """A value between two scores, and constants beyond them; NaN and NULL are beyond the last."""
    number = dialect.number
    branches = [
        (f"{score} <= {number(low[0])}", number(low[1])),
        (f"{score} < {number(high[0])}", between),
    ]
    return case(branches, number(high[1]))


def _place(grid: Grid, cells: Cells, score: str, dialect: Dialect) -> str:
    """What is rounded down to the cell: `Cells.places` as SQL, of the score less `Grid.first`."""
    number = dialect.number
    one, least = number(1.0), number(LEAST)
    if cells.centre is None:  # even in the logit
        zero, half = number(0.0), number(HALF)
        below = case([(f"{score} > {zero}", score)], zero)
        above = case([(f"{score} < {one}", f"{one} - {score}")], zero)
        lower, upper = (f"SQRT(SQRT(SQRT({p})))" for p in (below, above))
        side, low, high = f"{score} < {number(0.5)}", f"{lower} - {half}", f"{half} - {upper}"
    else:  # finest in the middle
        first, last = (grid.first + side * FAR * cells.spread for side in (-1.0, 1.0))
        near = _moved(score, score, (first, first), (last, last), dialect)
        t = f"({near} - {_negative(number(grid.first))}) * {number(1.0 / cells.spread)}"
        far = f"{one} / ({one} + ABS({t}))"
        side, low, high = f"{t} < {number(0.0)}", f"{far} - {one}", f"{one} - {far}"
    return f"{number(cells._scale)} * {case([(side, f'{low} - {least}')], high)}"
