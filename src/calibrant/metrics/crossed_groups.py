"""Groups of rows from the columns of a frame: categories, ranges of numbers, and their crossings.

Labels play no part in how groups are made, so that a test over them keeps its level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags
from calibrant.data.attribute_table import AttributeColumn, AttributeTable, title
from calibrant.data.segment_column import segment_names

Codes = NDArray[np.uint8]
Index = NDArray[np.int64]

#: what the group of all rows, and the column of predictions, are called
ALL_ROWS, PREDICTION = "all rows", "prediction"
#: numbers of at most so many different values are taken as categories
FEW_VALUES = 10
#: with more columns, they are crossed with the predictions only, not with each other
MOST_CROSSED = 40
#: columns that a note names
NAMED = 5
#: digits of the ends of ranges, more where they do not tell ranges apart
DIGITS = (3, 4, 6, 9, 17)


class GroupRule(NamedTuple):
    """How groups are made: see `calibrant.metrics.multicalibration`."""

    crossings: bool = True
    quantiles: int = 5
    categories: int = 20
    min_rows: int = 50


@dataclass(frozen=True)
class CodedColumn:
    """A column as small integers, and the words for each of them."""

    name: str
    codes: Codes
    words: tuple[str, ...]


def code_columns(
    table: AttributeTable, p: Array, positive: Flags, rule: GroupRule
) -> tuple[list[CodedColumn], list[str]]:
    """All rows, the predictions and the columns that tell rows apart; notes say what was left out.

    O(n log n) for each column.
    """
    kept = [CodedColumn("", np.zeros(len(p), dtype=np.uint8), (ALL_ROWS,))]
    kept += [one for one in [_ranges(PREDICTION, p, rule)] if len(one.words) > 1]
    constant, leaks, again, pooled = [], [], [], []
    seen = {one.codes.tobytes() for one in kept}
    for label, column in zip(table.labels, table.columns, strict=True):
        coded, rare = _coded(title(label), column, rule)
        if len(coded.words) < 2:
            constant.append(coded.name)
        elif _tells(coded, positive):
            leaks.append(coded.name)
        elif coded.codes.tobytes() in seen:
            again.append(coded.name)
        else:
            seen.add(coded.codes.tobytes())
            kept.append(coded)
            pooled += [f"{rare:,} of {coded.name}"] if rare else []
    said = (
        (constant, "left out, for their rows are all in one group: {}"),
        (leaks, "left out, for they tell the label exactly: {}. Is the label among the features?"),
        (again, "left out, for they have the groups of another column: {}"),
        (pooled, "rare values were put together as one group: {}"),
    )
    return kept, [words.format(_some(names)) for names, words in said if names]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _tells(column: CodedColumn, positive: Flags) -> bool:
    """Whether every group has labels of one kind only, and both kinds came."""
    rows = np.bincount(column.codes)
    ones = np.bincount(column.codes, positive)
    return bool(((ones == 0) | (ones == rows)).all() and 0 < ones.sum() < rows.sum())


# --- one column -----------------------------------------------------------------------------------


def _coded(name: str, column: AttributeColumn, rule: GroupRule) -> tuple[CodedColumn, int]:
    """The column in groups, and how many of its values were rare."""
    present = ~column.missing
    if not column.nominal:
        values = column.values[present].astype(np.float64)
        if len(values) and _many(values):
            return _with_missing(_ranges(name, values, rule), present), 0
    found, places = column.distinct()
    places = places[present]
    counts = np.bincount(places, minlength=len(found))
    order = np.argsort(-counts, kind="stable")
    order = order[: rule.categories][counts[order[: rule.categories]] >= rule.min_rows]
    rare = len(found) - len(order)
    if rare == 1 and len(found) <= rule.categories:  # it may as well have its own name
        order, rare = np.append(order, np.setdiff1d(np.arange(len(found)), order)), 0
    code = np.full(len(found), len(order), dtype=np.uint8)
    code[order] = np.arange(len(order))
    names = segment_names([_short(found[place]) for place in order])
    words = [f"{name} = {one}" for one in names]
    words += [f"{name}: {rare:,} rare values"] * (rare > 0)
    return _with_missing(CodedColumn(name, code[places], tuple(words)), present), rare


def _many(values: Array) -> bool:
    """Whether there are more than a few different numbers, by a look at some of them first."""
    return any(len(np.unique(some)) > FEW_VALUES for some in (values[:1000], values))


def _short(value: Any) -> Any:
    """A whole number without its decimals: a column with gaps comes as fractions."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _ranges(name: str, values: Array, rule: GroupRule) -> CodedColumn:
    """Numbers in ranges of as many rows each as ties allow."""
    n = len(values)
    count = max(min(rule.quantiles, n // rule.min_rows), 1)
    ordered = np.sort(values)
    last = np.unique(ordered[-(-n * np.arange(1, count + 1) // count) - 1])
    ends = np.searchsorted(ordered, last, side="right")
    starts = np.append(0, ends[:-1])
    words = _range_words(name, list(zip(ordered[starts].tolist(), last.tolist(), strict=True)))
    codes = np.searchsorted(last[:-1], values, side="left").astype(np.uint8)
    return CodedColumn(name, codes, tuple(words))


def _range_words(name: str, ends: Sequence[tuple[float, float]]) -> list[str]:
    """What ranges are called, with as many digits as tell them apart.

    >>> _range_words("age", [(18.0, 25.5), (26.0, 26.0)]), _range_words("x", [(-1e9, 1.0)])
    (['age 18 to 25.5', 'age 26'], ['x −1e+09 to 1'])
    """
    words: list[str] = []
    for digits in DIGITS:
        shown = [tuple(_number(end, digits) for end in pair) for pair in ends]
        words = [f"{name} {' to '.join(dict.fromkeys(pair))}" for pair in shown]
        if len(set(words)) == len(words):
            break
    return words


def _number(value: float, digits: int) -> str:
    """So many digits, and no power of ten for what people count: years, or amounts of money."""
    whole = abs(value) < 1e7 and (value == round(value) or abs(value) >= 10.0**digits)
    text = f"{value:.0f}" if whole else f"{value:.{digits}g}"
    return text.replace("-", "−", 1) if value < 0 else text


def _with_missing(column: CodedColumn, present: Flags) -> CodedColumn:
    if present.all():
        return column
    codes = np.full(len(present), len(column.words), dtype=np.uint8)
    codes[present] = column.codes
    return CodedColumn(column.name, codes, (*column.words, f"{column.name} missing"))


# --- crossings ------------------------------------------------------------------------------------


class Crossings:
    """All pairs of columns, the first of which is that of all rows, and the cells of each pair.

    A column crossed with all rows is itself. ``place`` has the group of each cell, −1 for none.
    """

    def __init__(self, columns: Sequence[CodedColumn], rule: GroupRule) -> None:
        self.columns = columns
        self.codes = np.vstack([column.codes for column in columns])
        self.wide = len(columns) > MOST_CROSSED + 2 and rule.crossings
        first, second = np.triu_indices(len(columns), 1)
        upto = 1 if not rule.crossings else 2 if self.wide else len(columns)
        crossed = first < upto
        self.first = np.append(0, first[crossed])  # all rows by themselves come first
        self.second = np.append(0, second[crossed])
        sizes = np.array([len(column.words) for column in columns])
        self.width = sizes[self.second]
        cells = sizes[self.first] * self.width
        self.offset = np.cumsum(cells) - cells
        self.place = np.arange(int(cells.sum()))

    def sums(self, values: NDArray[Any], rows: slice, into: NDArray[Any]) -> None:
        """Add the values of some rows, a line for each, to the sums of their groups."""
        from calibrant.kernels.group_sums import add_to_groups

        where = (self.first, self.second, self.width, self.offset, self.place)
        add_to_groups(self.codes[:, rows], *where, values, into)

    def keep(self, enough: Flags, rows: Array) -> Index:
        """Keep the cells that are large enough and not the same group as another; their numbers.

        A crossing that has as many rows as one of its two groups is that group again.
        """
        crossing = np.repeat(np.arange(len(self.offset)), np.diff(self.offset, append=len(rows)))
        inside = np.arange(len(rows)) - self.offset[crossing]
        one, other = self.first[crossing], self.second[crossing]
        code, other_code = np.divmod(inside, self.width[crossing])
        # column k crossed with all rows is the k-th crossing: its cells are those of the column
        parents = (self.offset[one] + code, self.offset[other] + other_code)
        new = (one == 0) | ((rows != rows[parents[0]]) & (rows != rows[parents[1]]))
        kept = np.flatnonzero(enough & new)
        self.place = np.full(len(rows), -1)
        self.place[kept] = np.arange(len(kept))
        return kept

    def parts(self, cells: Index) -> list[tuple[str, ...]]:
        """The words for some cells, one for each column that plays a part; none for all rows."""
        crossing = np.searchsorted(self.offset, cells, side="right") - 1
        code, other = np.divmod(cells - self.offset[crossing], self.width[crossing])
        named = []
        for j, a, b in zip(crossing.tolist(), code.tolist(), other.tolist(), strict=True):
            sides = [(self.first[j], a), (self.second[j], b)]
            if self.columns[self.first[j]].name == PREDICTION:  # which stands last
                sides.reverse()
            named.append(tuple(self.columns[c].words[k] for c, k in sides if c))
        return named
