"""Rows of files with a column of scores for each of several classes, held in memory."""

from __future__ import annotations

from typing import Any, NamedTuple

from calibrant.array_types import Array, Index
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.engines.files.yes_no_words import Label
from calibrant.errors import InputError

#: scores that are read into memory at most, 8 bytes each
MOST_NUMBERS = 2**29


class ColumnsRead(NamedTuple):
    """Columns of numbers, the code of each row's label, and weights; in the order of the rows.

    ``features`` is a frame of other columns of the same rows, where they were asked for.
    """

    numbers: Array
    codes: Index
    weight: Array | None
    features: Any = None


class FileMatrix(NamedTuple):
    """The scores of several classes from files, and facts worth remembering.

    ``raw`` are the scores of the same rows before calibration, where they were asked for.
    """

    matrix: ScoreMatrix
    classes: tuple[Label, ...]
    facts: dict[str, Any]
    raw: ScoreMatrix | None = None


def refuse_many(rows: int, columns: int) -> None:
    """Refuse more scores than are held in memory."""
    if rows * columns > MOST_NUMBERS:
        raise InputError(
            "scores of several classes are held in memory, so there must be at most "
            f"{MOST_NUMBERS:,} of them, but more than {rows:,} rows of {columns} columns came. "
            "Use a sample of the rows; apply takes any number of rows."
        )
