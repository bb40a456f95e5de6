"""Rows of files with a column of scores for each of several classes, held in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from calibrant.arrays import Array, Index
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


class ClassRows(ABC):
    """The rows of files, and what is asked of them where there are several classes."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of the files' columns."""

    @abstractmethod
    def labels(self) -> dict[Any, Label]:
        """The different labels of all rows, by their spellings."""

    @abstractmethod
    def read(
        self, columns: Sequence[str], codes: Mapping[Any, int], features: Sequence[str] = ()
    ) -> ColumnsRead:
        """Some columns of numbers, the codes of the labels by their spellings, and other columns as
        they are; an InputError that says what is wrong with which rows."""

    @abstractmethod
    def refuse_sums(self, columns: Sequence[str]) -> None:
        """An InputError for rows that are no distributions, when there are some."""

    @abstractmethod
    def facts(self, rows: int) -> dict[str, Any]:
        """What is worth remembering of the files."""


def refuse_many(rows: int, columns: int) -> None:
    """Refuse more scores than are held in memory."""
    if rows * columns > MOST_NUMBERS:
        raise InputError(
            "scores of several classes are held in memory, so there must be at most "
            f"{MOST_NUMBERS:,} of them, but more than {rows:,} rows of {columns} columns came. "
            "Use a sample of the rows; apply takes any number of rows."
        )
