"""Attributes of rows: from arrays and frames to numbers and category codes.

A value of a numeric attribute is a number or missing; one of a nominal attribute is a category or
missing. Which attributes are nominal is learnt once, from the calibration rows, and holds for all
rows that come later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags
from calibrant.data.attribute_table import AttributeColumn, AttributeTable, Name, read_table, title
from calibrant.data.json_facts import is_text, shown
from calibrant.data.to_numpy import plain
from calibrant.errors import InputError, ParameterError
from calibrant.local.saved_checks import check_saved

Category = str | int | float | bool

#: the code of a category that is missing, or was not seen in the calibration rows
MISSING = -1


@dataclass(frozen=True)
class CodedRows:
    """Rows as numbers: numeric columns (0 where absent), what is absent, and category codes."""

    numeric: Array
    absent: Flags
    codes: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.numeric)

    def take(self, rows: Any) -> CodedRows:
        """Some of the rows."""
        return CodedRows(self.numeric[rows], self.absent[rows], self.codes[rows])

    def with_scores(self, scores: Array) -> CodedRows:
        """The same rows with the scores as further numeric columns, which are never absent."""
        extra = scores.reshape(len(scores), -1)
        present = np.zeros(extra.shape, dtype=bool)
        numeric = np.column_stack((self.numeric, extra))
        return CodedRows(numeric, np.column_stack((self.absent, present)), self.codes)


@dataclass(frozen=True)
class Attribute:
    """One column: its name, and its categories in order (None: it is numeric)."""

    name: Name
    categories: tuple[Category, ...] | None = None

    @property
    def title(self) -> str:
        """What to call it in messages."""
        return title(self.name)

    @property
    def nominal(self) -> bool:
        return self.categories is not None

    def floats(self, column: AttributeColumn) -> Array:
        """Numbers, or places among the categories; NaN where a value is missing or unseen."""
        if not self.nominal:
            return self._numbers(column)
        known = {_key(c): float(code) for code, c in enumerate(self.categories or ())}
        distinct, inverse = column.distinct()
        self._check_family(distinct)
        return np.array([known.get(_key(v), np.nan) for v in distinct] + [np.nan])[inverse]

    def _numbers(self, column: AttributeColumn) -> Array:
        """Finite float64, NaN where missing; others are refused with a reason."""
        if column.missing.all():  # their type does not matter
            return np.full(len(column.missing), np.nan)
        if column.nominal:
            raise InputError(
                f"{self.title} must hold numbers, as in the calibration rows, but categories came"
                f"{column.example()}."
            )
        values = column.values.astype(np.float64)
        infinite = np.isinf(values) & ~column.missing
        if infinite.any():
            raise InputError(
                f"{self.title} must be finite or missing: {int(infinite.sum())} of {len(values)} "
                f"are infinite (first at row {int(np.argmax(infinite))}). Cap them, or mark them "
                "missing."
            )
        return np.where(column.missing, np.nan, values + 0.0)

    def _check_family(self, distinct: Sequence[Any]) -> None:
        """Refuse words where numbers are known, or the reverse: none of them could match."""
        was = {isinstance(c, str) for c in self.categories or ()}
        came = {isinstance(v, str) for v in distinct}
        if was and came and not was & came:
            raise self.other_family(words=was.pop(), example=distinct[0])

    def other_family(self, *, words: bool, example: Any) -> InputError:
        """The error for words where numbers are known as categories, or the reverse."""
        numbers = "numbers or truth values"
        was, came = ("words", numbers) if words else (numbers, "words")
        return InputError(
            f"{self.title} must hold {was}, as in the calibration rows, but {came} came (such as "
            f"{example!r}). Convert them."
        )


@dataclass(frozen=True)
class Schema:
    """The attributes in order, and whether their names came with the data."""

    attributes: tuple[Attribute, ...]
    named: bool

    def __len__(self) -> int:
        return len(self.attributes)

    @property
    def nominal(self) -> Flags:
        """Which of the attributes are nominal."""
        return np.array([a.nominal for a in self.attributes], dtype=bool)

    @classmethod
    def learn(cls, table: AttributeTable, nominal: Any = None) -> Schema:
        """The attributes of calibration rows; ``nominal`` names numbers that are categories."""
        forced = _positions(nominal, table)
        attributes = []
        for place, (name, column) in enumerate(zip(table.labels, table.columns, strict=True)):
            categories = None
            if column.nominal or place in forced:
                categories = _categories(column, title(name))
            attributes.append(Attribute(name, categories))
        return cls(tuple(attributes), table.names is not None)

    def read(self, features: Any) -> CodedRows:
        """Later rows, coded in the same way; columns other than at the fit are refused."""
        return self.code(self.arrange(read_table(features)))

    def code(self, table: AttributeTable) -> CodedRows:
        """The columns as numbers and codes."""
        columns = self.floats(table)
        matrix = np.column_stack(columns) if columns else np.empty((len(table), 0))
        gone, nominal = np.isnan(matrix), self.nominal
        codes = np.where(gone, MISSING, matrix)[:, nominal].astype(np.int32)
        return CodedRows(np.where(gone, 0.0, matrix)[:, ~nominal], gone[:, ~nominal], codes)

    def floats(self, table: AttributeTable) -> list[Array]:
        """The columns as trees see them: numbers or codes, NaN where a value is missing."""
        pairs = zip(self.attributes, table.columns, strict=True)
        return [attribute.floats(column) for attribute, column in pairs]

    def arrange(self, table: AttributeTable) -> AttributeTable:
        """The columns in order: by name if both have names of one kind, else by position."""
        names = [a.name for a in self.attributes]
        known = table.names if self.named else None
        if known is None or {type(name) for name in known} != {type(name) for name in names}:
            if len(table.columns) != len(names):
                raise InputError(
                    f"features must have {len(names)} columns, as at fit, but "
                    f"{len(table.columns)} came."
                )
            return table
        missing = [name for name in names if name not in known]
        unexpected = [name for name in known if name not in names]
        if missing or unexpected:
            told = [f"{_some(missing)} missing"] * bool(missing)
            told += [f"{_some(unexpected)} unexpected"] * bool(unexpected)
            raise InputError(
                f"features must have the columns of the calibration rows: {', '.join(told)}. Pass "
                "the same columns; their order does not matter."
            )
        order = [known.index(name) for name in names]
        return AttributeTable(tuple(names), [table.columns[j] for j in order], table.rows)

    def to_state(self) -> dict[str, Any]:
        """What JSON can hold."""
        pairs = [
            [a.name, None if a.categories is None else [*a.categories]] for a in self.attributes
        ]
        return {"attributes": pairs, "named": self.named}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Schema:
        """Read what `to_state` wrote; anything else is refused."""
        pairs: Any = state.get("attributes")
        named: Any = state.get("named")
        fine = isinstance(pairs, list) and isinstance(named, bool)
        check_saved(fine, "its attributes are missing or of a wrong type.")
        schema = cls(tuple(_attribute(pair) for pair in pairs), named)
        names = [a.name for a in schema.attributes]
        apart = not named or len(set(names)) == len(names)
        check_saved(apart, "two of its attributes have the same name.")
        kinds = set(map(type, names))
        alike = len(kinds) <= 1 and (named or int not in kinds)
        check_saved(alike, "its attributes have names of different kinds.")
        return schema


def _attribute(pair: Any) -> Attribute:
    fine = isinstance(pair, list) and len(pair) == 2
    fine = fine and type(pair[0]) in (str, int) and _storable(pair[0])
    if fine and pair[1] is None:
        return Attribute(pair[0])
    fine = fine and isinstance(pair[1], list) and all(map(_storable, pair[1]))
    if not fine or len({_key(c) for c in pair[1]}) < len(pair[1]):
        raise InputError(f"the file is damaged: {shown(pair)} is no attribute.")
    return Attribute(pair[0], tuple(pair[1]))


def _storable(value: Any) -> bool:
    """Whether a file can hold a name or category: text, or a number that fits a float."""
    if isinstance(value, str):
        return is_text(value)
    if isinstance(value, int):
        return value.bit_length() <= 1023
    return isinstance(value, float) and math.isfinite(value)


def _categories(column: AttributeColumn, name: str) -> tuple[Category, ...]:
    """The categories present, in order."""
    found = column.distinct()[0]
    if any(isinstance(c, float) and not math.isfinite(c) for c in found):
        raise InputError(f"{name} must hold finite numbers as categories, but infinity came.")
    return tuple(sorted(found, key=_key))


def _key(category: Any) -> tuple[bool, Any]:
    """What categories are compared by: '1' is not 1, but 1 is 1.0.

    A column of whole numbers with gaps comes as floats.
    """
    return isinstance(category, str), category


def _some(names: Sequence[Name], most: int = 8) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _positions(nominal: Any, table: AttributeTable) -> set[int]:
    """The positions of columns; a number is a name if all names are numbers."""
    if nominal is None:
        return set()
    if isinstance(nominal, (str, bytes)) or not hasattr(nominal, "__iter__"):
        raise ParameterError(f"nominal must be a list of names or positions, but {nominal!r} came.")
    found = set()
    numbered = table.names is not None and all(isinstance(name, int) for name in table.names)
    for item in map(plain, nominal):
        if isinstance(item, str) or (numbered and type(item) is int):
            if table.names is None or item not in table.names:
                known = "they have no names" if table.names is None else _some(table.names)
                raise ParameterError(f"nominal names {item!r}, but of the columns {known}.")
            found.add(table.names.index(item))
        elif type(item) is int:
            if not 0 <= item < len(table.columns):
                raise ParameterError(
                    f"nominal must hold positions from 0 to {len(table.columns) - 1}, but {item} "
                    "came."
                )
            found.add(item)
        else:
            raise ParameterError(f"nominal must hold names or positions, but {item!r} came.")
    return found
