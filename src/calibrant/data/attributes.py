"""The features of rows: arrays and frames are read as columns of numbers or of categories.

A value of a numeric column is a number or missing; one of a nominal column is a category or
missing. Which columns are nominal is learnt once, from the calibration rows, and holds for all
rows that come later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.data.columns import (
    as_float,
    distinct_values,
    is_missing,
    null_mask,
    object_array,
    plain,
    refuse_unordered,
    series_of_doubles,
    to_narwhals,
)
from calibrant.data.documents import brief, check_file, is_unicode
from calibrant.errors import InputError, ParameterError

Name = str | int
Category = str | int | float | bool

#: the number that a file holds for a category that is missing, or was not seen in the fit
MISSING = -1


@dataclass(frozen=True)
class Attribute:
    """A feature column in the fit: its name, and its categories (None for a column of numbers)."""

    name: Name
    categories: tuple[Category, ...] | None = None

    @property
    def title(self) -> str:
        """What messages call the column."""
        return title_of(self.name)

    @property
    def nominal(self) -> bool:
        """Whether the column holds categories."""
        return self.categories is not None

    def floats(self, column: AttributeColumn) -> Array:
        """The column as floats: its numbers, or the position of each category in ``categories``.

        NaN where a value is missing or its category was not in the fit.
        """
        if not self.nominal:
            return self._numbers(column)
        known = {_category_key(c): float(code) for code, c in enumerate(self.categories or ())}
        distinct, inverse = column.distinct()
        was = {isinstance(c, str) for c in self.categories or ()}
        came = {isinstance(v, str) for v in distinct}
        if was and came and not was & came:  # none of them could match
            raise self.wrong_type_error(words=was.pop(), example=distinct[0])
        return np.array([known.get(_category_key(v), np.nan) for v in distinct] + [np.nan])[inverse]

    def _numbers(self, column: AttributeColumn) -> Array:
        """The numbers of a numeric column as float64, NaN where missing; infinity is refused."""
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

    def wrong_type_error(self, *, words: bool, example: Any) -> InputError:
        """The error for categories that were words in the fit and are numbers now, or the reverse.

        ``words`` says whether they were words in the fit. ``example`` is one of the new values.
        """
        numbers = "numbers or truth values"
        was, came = ("words", numbers) if words else (numbers, "words")
        return InputError(
            f"{self.title} must hold {was}, as in the calibration rows, but {came} came (such as "
            f"{example!r}). Convert them."
        )


@dataclass(frozen=True)
class Schema:
    """The columns of features of a fit, in order, and whether a frame gave them their names."""

    attributes: tuple[Attribute, ...]
    named: bool

    def __len__(self) -> int:
        return len(self.attributes)

    @property
    def nominal(self) -> Flags:
        """Which of the columns are nominal."""
        return np.array([a.nominal for a in self.attributes], dtype=bool)

    @classmethod
    def learn(cls, table: AttributeTable, nominal: Any) -> Schema:
        """The schema of the calibration rows; ``nominal`` names columns of numbers that are to be
        read as categories."""
        forced = _nominal_positions(nominal, table)
        attributes = []
        for place, (name, column) in enumerate(zip(table.labels, table.columns, strict=True)):
            categories = None
            if column.nominal or place in forced:
                values = column.distinct()[0]
                if any(isinstance(value, float) and not math.isfinite(value) for value in values):
                    raise InputError(
                        f"{title_of(name)} must hold finite numbers as categories, but infinity "
                        "came."
                    )
                categories = tuple(sorted(values, key=_category_key))
            attributes.append(Attribute(name, categories))
        return cls(tuple(attributes), table.names is not None)

    def read(self, features: Any) -> Array:
        """The matrix of later rows; columns other than at the fit are refused."""
        return self.matrix(self.arrange(read_attributes(features)))

    def matrix(self, table: AttributeTable) -> Array:
        """The columns of `floats` side by side, shape (n, attributes)."""
        columns = self.floats(table)
        return np.column_stack(columns) if columns else np.empty((len(table), 0))

    def floats(self, table: AttributeTable) -> list[Array]:
        """Each column as floats, see `Attribute.floats`."""
        pairs = zip(self.attributes, table.columns, strict=True)
        return [attribute.floats(column) for attribute, column in pairs]

    def arrange(self, table: AttributeTable) -> AttributeTable:
        """New columns in the order of the fit: by name if both have names, else by position."""
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
            lists = {"missing": missing, "unexpected": unexpected}
            what = ", ".join(
                f"{_first_names(listed)} {word}" for word, listed in lists.items() if listed
            )
            raise InputError(
                f"features must have the columns of the calibration rows: {what}. Pass the same "
                "columns; their order does not matter."
            )
        order = [known.index(name) for name in names]
        return AttributeTable(tuple(names), [table.columns[j] for j in order], table.rows)

    def to_state(self) -> dict[str, Any]:
        """The schema as JSON can hold it."""
        pairs = [
            [a.name, None if a.categories is None else [*a.categories]] for a in self.attributes
        ]
        return {"attributes": pairs, "named": self.named}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Schema:
        """The schema that `to_state` wrote; anything else is refused."""
        pairs: Any = state.get("attributes")
        named: Any = state.get("named")
        fine = isinstance(pairs, list) and isinstance(named, bool)
        check_file(fine, "its attributes are missing or of a wrong type.")
        schema = cls(tuple(_read_attribute(pair) for pair in pairs), named)
        names = [a.name for a in schema.attributes]
        different = not named or len(set(names)) == len(names)
        check_file(different, "two of its attributes have the same name.")
        kinds = set(map(type, names))
        alike = len(kinds) <= 1 and (named or int not in kinds)
        check_file(alike, "its attributes have names of different kinds.")
        return schema


def _read_attribute(pair: Any) -> Attribute:
    """A column from its pair of name and categories in a file."""
    fine = isinstance(pair, list) and len(pair) == 2
    fine = fine and type(pair[0]) in (str, int) and _is_storable(pair[0])
    if fine and pair[1] is None:
        return Attribute(pair[0])
    fine = fine and isinstance(pair[1], list) and all(map(_is_storable, pair[1]))
    if not fine or len({_category_key(c) for c in pair[1]}) < len(pair[1]):
        raise InputError(f"the file is damaged: {brief(pair)} is no attribute.")
    return Attribute(pair[0], tuple(pair[1]))


def _is_storable(value: Any) -> bool:
    """Whether a file can hold a name or category: text, or a number that fits a float."""
    if isinstance(value, str):
        return is_unicode(value)
    if isinstance(value, int):
        return value.bit_length() <= 1023
    return isinstance(value, float) and math.isfinite(value)


def _category_key(category: Any) -> tuple[bool, Any]:
    """The key by which categories are compared and sorted. '1' and 1 differ; 1 and 1.0 are the
    same.

    (Whole numbers with gaps are read as floats.)
    """
    return isinstance(category, str), category


def _first_names(names: Sequence[Name], most: int = 8) -> str:
    """The first names, and how many more there are, for an error."""
    listed = ", ".join(repr(name) for name in names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"


def _nominal_positions(nominal: Any, table: AttributeTable) -> set[int]:
    """The positions of the columns that ``nominal`` lists by name or by position.

    If all names of columns are numbers, a number is a name.
    """
    if nominal is None:
        return set()
    if isinstance(nominal, (str, bytes)) or not hasattr(nominal, "__iter__"):
        raise ParameterError(f"nominal must be a list of names or positions, but {nominal!r} came.")
    found = set()
    numbered = table.names is not None and all(isinstance(name, int) for name in table.names)
    for item in map(plain, nominal):
        if isinstance(item, str) or (numbered and type(item) is int):
            if table.names is None or item not in table.names:
                known = "they have no names" if table.names is None else _first_names(table.names)
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


# --- Reading features: the columns of a table, each with flags of what is missing -----------------


#: what to do about a column that is neither numbers nor categories
CONVERT = (
    "Convert it to numbers (dates for example to ages in days) or to strings, or leave it out."
)


@dataclass(frozen=True)
class AttributeColumn:
    """A column of features: its values, flags of the missing ones, and whether it is nominal."""

    values: NDArray[Any]
    missing: Flags
    nominal: bool

    def take(self, rows: Any) -> AttributeColumn:
        """The column of some rows."""
        return AttributeColumn(self.values[rows], self.missing[rows], self.nominal)

    def distinct(self) -> tuple[list[Any], Index]:
        """The different values, and for each row the position of its value. Missing values get the
        position after the last."""
        inverse = np.empty(len(self.values), dtype=np.intp)
        present = self.values[~self.missing]
        if present.dtype.kind == "O":
            values, codes = distinct_values(present.tolist())  # "1" is not 1, but 1 is 1.0
        else:
            unique, codes = np.unique(present, return_inverse=True)
            values = [plain(v) for v in unique]
        inverse[~self.missing] = codes
        inverse[self.missing] = len(values)
        return values, inverse

    def example(self) -> str:
        """A phrase with one of the values, for an error."""
        present = self.values[~self.missing]
        return f" (such as {plain(present[0])!r})" if len(present) else ""


@dataclass(frozen=True)
class AttributeTable:
    """Columns of features of the same rows.

    They have ``names`` only where all of these are words, or all are whole numbers.
    """

    names: tuple[Name, ...] | None
    columns: list[AttributeColumn]
    rows: int

    def __len__(self) -> int:
        return self.rows

    @property
    def labels(self) -> list[Name]:
        """The names of the columns, or "column 0", "column 1", … where they have none."""
        if self.names is not None:
            return list(self.names)
        return [title_of(j) for j in range(len(self.columns))]

    def take(self, rows: slice | Flags | Index) -> AttributeTable:
        """Some rows, by a slice (not copied), by flags or by numbers."""
        count = len(np.broadcast_to(0, self.rows)[rows])
        return AttributeTable(self.names, [c.take(rows) for c in self.columns], count)


def read_attributes(features: Any, only: Sequence[Name] | None = None) -> AttributeTable:
    """The columns of an array, a list of rows or a frame. Anything else is refused.

    If the columns of a frame have names of the same kind as ``only``, no other columns are read.
    """
    if isinstance(features, AttributeTable):
        return features
    if features is None:
        raise InputError(
            "features must be passed: this calibrator looks at the attributes of each row beside "
            "its score. Give features=X."
        )
    if hasattr(features, "tocsr"):
        raise InputError(
            "features must be dense, but a sparse matrix came. Convert it with .toarray(), or "
            "reduce it to fewer columns."
        )
    refuse_unordered(features, "features")
    if isinstance(features, (np.ndarray, list, tuple)):
        return _table_of_array(features)
    import narwhals as nw

    try:
        opened = to_narwhals(features, series=True)
    except nw.exceptions.NarwhalsError as wrong:
        raise InputError(f"features cannot be read as a frame: {wrong}") from wrong
    if isinstance(opened, nw.LazyFrame):
        raise InputError("features must be in memory, but a lazy frame came. Collect it first.")
    if isinstance(opened, nw.Series):
        raise InputError(
            "features must be a table with rows and columns, but one column came. Pass a frame of "
            "one column."
        )
    if not isinstance(opened, nw.DataFrame):
        return _table_of_array(features)
    names, rows = [plain(name) for name in opened.columns], len(opened)
    alike = any(all(type(name) is kind for name in names) for kind in (str, int))
    if only is not None and {*map(type, names)} == {*map(type, only)}:
        opened = opened.select([own for own in opened.columns if plain(own) in only])
        names = [plain(name) for name in opened.columns]
    columns = [
        _column_of_series(series, title_of(name))
        for name, series in zip(names, opened.iter_columns(), strict=True)
    ]
    return AttributeTable(tuple(names) if alike else None, columns, rows)


def _column_of_series(series: Any, name: str) -> AttributeColumn:
    """A column of features from a narwhals series."""
    import narwhals as nw

    dtype = series.dtype
    missing = null_mask(series)
    boolean = isinstance(dtype, nw.Boolean)
    if boolean or dtype.is_numeric():
        if isinstance(dtype, nw.Decimal):
            series = series_of_doubles(series)
        filled = series.fill_null(False if boolean else 0) if missing.any() else series
        values = np.asarray(filled.to_numpy())
        return _column_of_array(values.astype(bool) if boolean else values, missing, name)
    if isinstance(dtype, (nw.String, nw.Categorical, nw.Enum, nw.Object)):
        column = _column_of_objects(object_array(series.to_list()), missing, name)
        return column if isinstance(dtype, nw.Object) else replace(column, nominal=True)
    if missing.all():
        return AttributeColumn(np.zeros(len(missing)), missing, nominal=False)
    known = getattr(series.to_native(), "dtype", dtype) if dtype == nw.Unknown else dtype
    raise InputError(
        f"{name} of the features must hold numbers or categories, but its type is {known}. "
        f"{CONVERT}"
    )


def _table_of_array(features: Any) -> AttributeTable:
    """The columns of an array or of a list of rows."""
    if isinstance(features, np.ndarray):
        array = np.asarray(features)
    elif isinstance(features, (str, bytes)) or not hasattr(features, "__len__"):
        raise InputError(
            f"features must be a table (an array, a frame, a list of rows), but "
            f"{type(features).__name__} came."
        )
    else:
        try:
            array = np.asarray(features)
            if array.dtype.kind in "US" or array.ndim != 2:
                # NumPy turns [[1, "a"]] into words: keep the values themselves
                array = np.array(features, dtype=object)
        except (TypeError, ValueError) as wrong:
            raise InputError(
                f"features must be rows of one length, but they are not a table: {wrong}"
            ) from wrong
    if array.ndim != 2:
        raise InputError(
            f"features must be a table with rows and columns, but their shape is {array.shape}. "
            "Reshape one column with .reshape(-1, 1), one row with .reshape(1, -1)."
        )
    absent = (
        np.ma.getmaskarray(features)
        if isinstance(features, np.ma.MaskedArray)
        else (np.zeros(array.shape, dtype=bool))
    )
    columns = [
        _column_of_array(array[:, j], absent[:, j], title_of(j)) for j in range(array.shape[1])
    ]
    return AttributeTable(None, columns, len(array))


def title_of(name: Any) -> str:
    """What messages call a column, given its name or position."""
    return name if isinstance(name, str) else f"column {name}"


def _column_of_array(values: NDArray[Any], missing: Flags, name: str) -> AttributeColumn:
    """A column of features from an array."""
    kind = values.dtype.kind
    if kind == "O":
        return _column_of_objects(values, missing, name)
    if kind not in "fiubU":
        raise InputError(
            f"{name} of the features must hold numbers or categories, but {values.dtype} came. "
            f"{CONVERT}"
        )
    gone = missing | np.isnan(values) if kind == "f" else missing
    return AttributeColumn(values, gone, nominal=kind in "bU")


def _column_of_objects(values: NDArray[Any], missing: Flags, name: str) -> AttributeColumn:
    """A column of features from Python objects: numbers if all of them are, else categories."""
    if set(map(type, values[~missing].tolist())) == {str}:
        return AttributeColumn(values, missing, nominal=True)
    plain_values = [_to_category(value) for value in values]
    gone = missing | np.array([is_missing(value) for value in plain_values], dtype=bool)
    kinds = {type(v) for v, absent in zip(plain_values, gone, strict=True) if not absent}
    if not kinds <= {str, bool, int, float}:
        wrong = next(kind for kind in kinds if kind not in (str, bool, int, float))
        raise InputError(
            f"{name} of the features must hold numbers or categories, but values of type "
            f"{wrong.__name__} came. {CONVERT}"
        )
    if kinds <= {int, float}:
        numbers = [0.0 if no else _to_number(v) for v, no in zip(plain_values, gone, strict=True)]
        large = any(isinstance(v, int) for v in numbers)
        kind = object if large else float
        return AttributeColumn(np.array(numbers, dtype=kind), gone, nominal=False)
    return AttributeColumn(object_array(plain_values), gone, nominal=True)


def _to_number(value: Any) -> float:
    """The value as a float. A whole number that no float equals stays an int: it may be a
    category."""
    number = as_float(value)
    rounded = isinstance(value, int) and math.isfinite(number) and number != value
    return value if rounded else number


def _to_category(value: Any) -> Any:
    """The value as a str, int, float or bool. Decimals and other numbers become floats."""
    value = plain(value)
    if type(value) in (str, int, float, bool) or value is None:
        return value
    if isinstance(value, str):
        return str(value)
    if not isinstance(value, (Real, Decimal)) or is_missing(value):
        return None if isinstance(value, Decimal) else value
    return as_float(value)
