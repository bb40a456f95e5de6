"""The rows of files, whoever reads them: questions asked of all rows, and the table of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from calibrant.array_types import Array, Index
from calibrant.data.lazy import HEAD, BadRowsError, CellsOption, Coding, LazyRows, Names
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable, pooling_facts
from calibrant.engines.files.spelling import Label, classes_of
from calibrant.errors import InputError

T = TypeVar("T")
#: how many files are named in the facts of a fit
NAMED = 20
#: what to do about probabilities outside [0, 1]
OUTSIDE_ADVICE = "Divide percentages by 100; calibrate margins or logits first."


class FileTable(NamedTuple):
    """The score table of files, its labels, and facts worth remembering."""

    table: ScoreTable
    classes: tuple[Label, Label]
    pos_label: Label
    facts: dict[str, Any]


class RowsOfFiles(ABC):
    """The rows of files as a lazy frame, and questions that are asked of it.

    Labels are known by their spellings in the first rows; one that comes later costs another pass.
    """

    names: Names
    role: str

    @property
    @abstractmethod
    def file_names(self) -> list[str]:
        """What the files are called."""

    @property
    @abstractmethod
    def expected(self) -> list[int | None]:
        """How many rows each file must hold; None where only the engine can tell."""

    @property
    def dropped(self) -> int:
        """How many rows were left out because they have no score or label."""
        return 0

    @abstractmethod
    def labels(self, rows: int | None) -> dict[Any, Label]:
        """The different labels of the first so many rows, or of all, by their spellings."""

    @abstractmethod
    def lazy(self, coding: Coding) -> LazyRows:
        """The rows as a lazy frame, its columns called by their roles."""

    @abstractmethod
    def refuse(self, coding: Coding) -> None:
        """An InputError that says what is wrong with the rows, when something is."""

    @abstractmethod
    def refuse_labels(self) -> None:
        """An InputError for missing labels, or for files without rows, when either is so."""

    @abstractmethod
    def refuse_outside(self) -> None:
        """An InputError for probabilities outside [0, 1], when there are some."""

    def respell(self) -> bool:
        """Read numbers as most of them are written; whether that is another way than before."""
        return False

    def by_role(
        self,
        number: Callable[[str, str], T],
        label: Callable[[str], T],
        segment: Callable[[str], T],
    ) -> dict[str, T]:
        """What functions of the columns' names give, by the roles of the columns.

        ``number`` is told the role of its column, too, for messages.
        """
        names = self.names
        found = {"score": number(names.score, self.role), "label": label(names.label)}
        if names.weight:
            found["weight"] = number(names.weight, "weight")
        found |= {role: segment(name) for role, name in names.roles_of_segments().items()}
        return found | ({"raw": number(names.raw, "score")} if names.raw else {})

    def coding(self, pos_label: Any, *, all_rows: bool) -> Coding:
        """How labels are read: by those of the first rows, or of all."""
        values = {} if all_rows else self.labels(HEAD)
        if len(set(values.values())) < 2:  # the rows may be sorted by label
            values = self.labels(None)
        if not values:
            self.refuse_labels()
        return classes_of(values, self.names.label, pos_label)

    def ask(self, question: Callable[[LazyRows], T], pos_label: Any = None) -> tuple[T, Coding]:
        """The answer of all rows, and how the labels were read; an InputError for bad rows."""
        coding = self.coding(pos_label, all_rows=False)
        try:
            return question(self.lazy(coding)), coding
        except BadRowsError:
            if self.respell():
                return self.ask(question, pos_label)
            again = self.coding(pos_label, all_rows=True)
        if again != coding:
            with suppress(BadRowsError):
                return question(self.lazy(again)), again
        self.refuse(again)
        raise InputError("some rows cannot be read.")  # pragma: no cover - a check says which

    def facts(self, rows: int | None) -> dict[str, Any]:
        """What is worth remembering of the files; an InputError if they hold another number of
        rows."""
        if rows is not None:
            check_rows(rows + self.dropped, self.expected, self.file_names[0])
        files, more = self.file_names[:NAMED], len(self.file_names) - NAMED
        facts: dict[str, Any] = {"files": [*files, f"... {more} more"] if more > 0 else files}
        if rows is not None:
            facts["rows"] = rows
        if self.dropped:
            facts["rows_dropped"] = self.dropped
        return facts | self.names.facts()


def check_rows(rows: int, expected: Sequence[int | None], first: str) -> None:
    """Refuse a result of fewer or more rows than the files hold, where their number is known."""
    known = [count for count in expected if count is not None]
    if len(known) < len(expected) or sum(known) == rows:
        return
    what = first if len(expected) == 1 else f"{first} and the other files"
    raise InputError(
        f"all {sum(known):,} rows of {what} must be read, but {rows:,} were. This is a mistake of "
        "the reader, so nothing is written. Save the data in another way, for example as Parquet, "
        "and please report it."
    )


def not_in_json(column: str) -> str:
    """What to say of a column with numbers that JSON does not have."""
    return (
        f"column {column!r} holds NaN or infinite numbers, which JSON does not have. Write "
        ".parquet or .csv, or replace them first."
    )


def read_rows(
    rows: RowsOfFiles, *, cells: CellsOption = "auto", pos_label: Any = None
) -> FileTable:
    """The score table of files; what was done to the scores is among the facts."""
    grouped, coding = rows.ask(lambda lazy: lazy.grouped(cells), pos_label)
    table = grouped.table()
    if rows.role == "probability" and not table.looks_like_probabilities:
        rows.refuse_outside()
    facts = rows.facts(grouped.rows) | pooling_facts(table)
    return FileTable(table, coding.classes, coding.pos_label, facts)


# --- Rows of files with a column of scores for each of several classes, held in memory ------------


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
