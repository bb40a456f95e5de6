"""One face for the engines that read files: ask questions of their rows, add a column to them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from calibrant.data.lazy import Names, check_names
from calibrant.data.segments import NewSegments
from calibrant.engines.apply import ApplyOptions, RowFitted
from calibrant.engines.files.files import PLAIN_READING, ReadOptions, spool
from calibrant.engines.rows import RowsOfFiles
from calibrant.errors import InputError, ParameterError, did_you_mean
from calibrant.fitting.fitted import Fitted
from calibrant.outputs import STANDARD
from calibrant.rules.base import VectorMap

if TYPE_CHECKING:
    from calibrant.engines.duckdb.rows import ClassRows


Paths = Sequence[str | os.PathLike[str]]
#: what only DuckDB reads, and what to do instead
FEATURES = ("columns beside the score are read", "")
SEVERAL = (
    "scores of several classes are read and written",
    ", or apply the calibrator there by SQL: calibrant export --to sql --dialect spark",
)


@dataclass(frozen=True)
class Engine:
    """What reads files, and writes them with one more column, for one job.

    ``package`` has the engine's ``file_rows``, ``apply_file`` and ``first_rows``, for its
    ``session``. ``standard_input`` gives the file that ``-`` stands for. ``notes`` say what a user
    should know of how the files were read. ``repeated`` are the names that several columns of the
    file last looked at have.
    """

    session: Any
    package: ModuleType
    standard_input: Callable[[], Path] | None = None
    notes: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)

    def rows(self, files: Paths, names: Names, role: str = "score") -> RowsOfFiles:
        """The rows of files."""
        check_names(names)
        there = self._there(files)
        found: RowsOfFiles = self.package.file_rows(self.session, there, names, role)
        return found

    def first_rows(self, files: Paths, count: int) -> dict[str, list[Any]]:
        """The columns of the first of the files, by name: the values of its first rows.

        Text files have text for values. Columns of one name are left out; ``repeated`` names them.

        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "s.csv"
        >>> _ = file.write_text("p,y\\n0.2,no\\n0.7,yes\\n")
        >>> with open_engine() as engine:
        ...     engine.first_rows([file], 10)
        {'p': ['0.2', '0.7'], 'y': ['no', 'yes']}
        """
        names, rows = self.package.first_rows(self.session, self._there(files), count)
        once = [i for i, name in enumerate(names) if names.count(name) == 1]
        self.repeated[:] = dict.fromkeys(name for name in names if names.count(name) > 1)
        return {names[i]: [row[i] for row in rows] for i in once}

    def _there(self, files: Paths) -> Paths:
        """The files, with one for standard input."""
        if not any(os.fspath(name) == STANDARD for name in files):
            return files
        if self.standard_input is None:
            raise InputError(
                "standard input (-) is read by the engine duckdb alone. Save it to a file first."
            )
        spooled = self.standard_input()
        return [spooled if os.fspath(name) == STANDARD else name for name in files]

    def columns(self, files: Paths, wanted: Sequence[str] = ()) -> tuple[str, ...]:
        """The names of the columns of files; ``wanted`` are some that must be there."""
        self._need_duckdb(SEVERAL)
        names: tuple[str, ...] = self.package.column_names(self.session, self._there(files), wanted)
        return names

    def class_rows(
        self,
        files: Paths,
        wanted: Sequence[str],
        label: str,
        weight: str | None = None,
        role: str = "score",
    ) -> ClassRows:
        """The rows of files with a column of scores for each of several classes."""
        self._need_duckdb(SEVERAL)
        there = self._there(files)
        found: ClassRows = self.package.class_rows(self.session, there, wanted, label, weight, role)
        return found

    def feature_rows(
        self, files: Paths, features: Sequence[str], names: Names, role: str = "score"
    ) -> ClassRows:
        """The rows of files with other columns beside score, label and weight, to read at once."""
        self._need_duckdb(FEATURES)
        check_names(names)
        wanted = [names.score, *features]
        return self.class_rows(files, wanted, names.label, names.weight, role)

    def _need_duckdb(self, what: tuple[str, str]) -> None:
        """Refuse another engine for what only DuckDB reads."""
        if not hasattr(self.package, "class_rows"):
            are_read, instead = what
            raise InputError(
                f"{are_read} by DuckDB only, but another engine was asked for. Leave the engine "
                f"out{instead}."
            )

    def apply(
        self,
        fitted: Fitted,
        files: Paths,
        out: str | os.PathLike[str],
        options: ApplyOptions,
        new_segments: NewSegments | None = None,
    ) -> int:
        """Copy files with a column of probabilities; the number of rows.

        ``new_segments`` counts the rows of segments that the calibrator has not seen.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from calibrant.maps import Piecewise
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "in.csv").write_text("id,p\\n007,0.9\\n008,0.2\\n")
        >>> f = Fitted(Piecewise.step([0.5], [0.25, 0.75]), (0, 1), 1)
        >>> with open_engine() as engine:
        ...     engine.apply(f, [folder / "in.csv"], folder / "out.csv", ApplyOptions("p"))
        2
        >>> print((folder / "out.csv").read_text())
        id,p,probability
        007,0.9,0.75
        008,0.2,0.25
        <BLANKLINE>
        """
        options.check_fitted(fitted)
        if isinstance(fitted.map, VectorMap):
            self._need_duckdb(SEVERAL)
        if isinstance(fitted, RowFitted):
            self._need_duckdb(FEATURES)
        count: int = self.package.apply_file(
            self.session, fitted, self._there(files), out, options, new_segments
        )
        return count


ENGINES = ("duckdb", "spark")


@contextmanager
def open_engine(
    name: str = "duckdb",
    *,
    threads: int | None = None,
    memory_limit: str | None = None,
    progress: Callable[[float], None] | None = None,
    master: str | None = None,
    reading: ReadOptions = PLAIN_READING,
) -> Iterator[Engine]:
    """An engine for one job.

    Parameters
    ----------
    name : {"duckdb", "spark"}
    threads : int, optional
        Cores to use; all by default.
    memory_limit : str, optional
        Such as ``"2GB"``: of DuckDB, or of Spark's driver.
    progress : callable, optional
        Called now and then with the fraction that is done.
    master : str, optional
        Of Spark; default: all cores of this machine.
    reading : ReadOptions, optional
        How files are read where they can be read in more than one way.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "s.csv"
    >>> _ = file.write_text("p,y\\n0.2,no\\n0.7,yes\\n")
    >>> with open_engine("duckdb", threads=1) as engine:
    ...     answer, coding = engine.rows([file], Names("p", "y")).ask(lambda rows: rows.extent())
    >>> answer[0], coding.pos_label
    (2, 'yes')
    """
    if name not in ENGINES:
        hint = did_you_mean(name, ENGINES)
        raise ParameterError(f"engine must be {' or '.join(ENGINES)}, but {name!r} came.{hint}")
    if name == "spark":
        from calibrant.engines import spark_files
        from calibrant.engines.spark import Spark

        if reading.decimal is not None or reading.drop:
            raise ParameterError(
                "the engine spark reads plain numbers and drops no rows: leave --decimal and "
                "--missing out, or use the engine duckdb."
            )
        place = master or "local[*]"
        with Spark(place, threads=threads, memory=memory_limit, progress=progress) as session:
            yield Engine(session, spark_files)
        return
    from calibrant.engines import duckdb

    if master is not None:
        raise ParameterError("a master is for Spark: use it with the engine spark.")
    with duckdb.Session(
        threads=threads, memory_limit=memory_limit, progress=progress, reading=reading
    ) as session:
        standard_input = functools.cache(lambda: spool(reading, session.temporary("stdin")))
        yield Engine(session, duckdb, standard_input, session.notes)
