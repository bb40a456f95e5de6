"""Questions that are asked of rows, and several of them answered in one pass.

Most engines answer each question by a GROUP BY where the rows are. An engine that works in this
process can hand over its rows instead, a batch at a time, and then one pass answers what is asked
of several columns: a few NumPy sums per batch cost less than a GROUP BY of many cells.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.data.grouped_sums import Columns
from calibrant.data.lazy_checks import BadRowsError
from calibrant.data.lazy_rows import LazyRows
from calibrant.data.validation import HEAVIEST

T = TypeVar("T")

#: up to this many cells, sums are made in this process, in arrays with a place for each cell
FEW_CELLS = 2**20
#: rows of a batch: small enough that a few columns of it stay in the processor's cache
BATCH = 2**15


class Batch(NamedTuple):
    """Finite scores, labels 0 and 1, and weights, if there are any."""

    x: Array
    y: NDArray[np.int64]
    w: Array | None


class Question(Protocol):
    """A question about all rows: the engine answers it, or it is answered here, batch by batch."""

    @property
    def few(self) -> bool:
        """Whether the answer is small enough to be made here."""

    def ask(self, rows: LazyRows) -> Columns:
        """The answer, made where the rows are."""

    def add(self, batch: Batch) -> None:
        """Add some rows to the answer."""

    def found(self) -> Columns | None:
        """The answer from all rows that were added; None where the engine must be asked."""


#: a generator that yields one question after the other, and is sent the answer to each
Steps = Generator[Question, Columns, T]


def together(*asking: tuple[LazyRows, Steps[T]]) -> list[T]:
    """Run several generators of questions side by side; the result of each.

    What they ask at the same time is answered in one pass, if possible. A BadRowsError becomes an
    InputError that says what is wrong with the rows, where that is known.
    """
    done: dict[int, T] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(asking)))
    while answers:
        asked: dict[int, tuple[LazyRows, Question]] = {}
        for i, answer in answers.items():
            rows, steps = asking[i]
            try:
                asked[i] = rows, rows.checked(partial(steps.send, answer))
            except StopIteration as end:
                done[i] = end.value
        answers = dict(zip(asked, _answers(list(asked.values())), strict=True))
    return [done[i] for i in range(len(asking))]


def _answers(asked: Sequence[tuple[LazyRows, Question]]) -> list[Columns]:
    read = _read(asked) if asked and _readable(asked) else [None] * len(asked)
    return [
        rows.checked(partial(question.ask, rows)) if answer is None else answer
        for (rows, question), answer in zip(asked, read, strict=True)
    ]


def _readable(asked: Sequence[tuple[LazyRows, Question]]) -> bool:
    """Whether one pass can answer all questions: they are about the same rows, the engine works in
    this process, and the answers are small."""
    source = asked[0][0].source
    same = all(rows.source is source for rows, _ in asked)
    return same and source.implementation.value in READERS and all(q.few for _, q in asked)


def _read(asked: Sequence[tuple[LazyRows, Question]]) -> list[Columns | None]:
    """The answers from the rows themselves; all None where rows cannot be read or are wrong.

    Then the engine is asked, which says what is wrong.
    """
    rows = asked[0][0]
    try:
        rows.run(partial(_add_all, asked))
    except BadRowsError:
        return [None] * len(asked)
    return [question.found() for _, question in asked]


def _add_all(asked: Sequence[tuple[LazyRows, Question]]) -> None:
    rows = asked[0][0]
    columns = [
        nw.col(own.score).cast(nw.Float64).alias(f"x{i}") for i, (own, _) in enumerate(asked)
    ]
    if rows.names.weight:
        columns.append(nw.col("weight").alias("w"))
    frame = rows.source.select(rows.label().cast(nw.Int64).alias("y"), *columns)
    for y, *scores in READERS[frame.implementation.value](frame):
        w = scores.pop() if rows.names.weight else None
        if w is not None and not ((w >= 0.0) & (w <= HEAVIEST)).all():
            raise BadRowsError
        for x, (_, question) in zip(scores, asked, strict=True):
            if not np.isfinite(x).all():
                raise BadRowsError
            question.add(Batch(x, y, w))


def _read_duckdb(frame: nw.LazyFrame[Any]) -> Iterator[list[NDArray[Any]]]:
    reader = frame.to_native().to_arrow_reader(BATCH)
    try:
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except Exception as error:  # Arrow's words for what the engine says better
                raise BadRowsError from error
            if any(column.null_count for column in batch.columns):
                raise BadRowsError
            yield [column.to_numpy() for column in batch.columns]
    finally:
        reader.close()


#: engines that work in this process, and how their rows come, by narwhals' name
READERS: dict[str, Callable[[nw.LazyFrame[Any]], Iterator[list[NDArray[Any]]]]] = {
    "duckdb": _read_duckdb
}
