"""One face for the engines that read files: ask questions of their rows, add a column to them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from calibrant.data.lazy_checks import Names, check_names
from calibrant.data.segment_column import NewSegments
from calibrant.engines.apply_options import ApplyOptions
from calibrant.engines.rows_of_classes import ClassRows
from calibrant.engines.rows_of_files import RowsOfFiles
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.fitted import Fitted
from calibrant.maps import VectorMap

__all__ = ["ENGINES", "Engine", "open_engine"]

Paths = Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class Engine:
    """What reads files, and writes them with one more column, for one job.

    ``package`` has the engine's ``file_rows`` and ``apply_file``, for its ``session``.
    """

    session: Any
    package: ModuleType

    def rows(self, files: Paths, names: Names, role: str = "score") -> RowsOfFiles:
        """The rows of files."""
        check_names(names)
        found: RowsOfFiles = self.package.file_rows(self.session, files, names, role)
        return found

    def columns(self, files: Paths, wanted: Sequence[str] = ()) -> tuple[str, ...]:
        """The names of the columns of files; ``wanted`` are some that must be there."""
        self._check_several()
        names: tuple[str, ...] = self.package.column_names(self.session, files, wanted)
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
        self._check_several()
        found: ClassRows = self.package.class_rows(self.session, files, wanted, label, weight, role)
        return found

    def _check_several(self) -> None:
        if not hasattr(self.package, "class_rows"):
            raise InputError(
                "scores of several classes are read and written by DuckDB only, but another engine "
                "was asked for. Leave the engine out, or apply the calibrator there by SQL: "
                "calibrant export --to sql --dialect spark."
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
            self._check_several()
        count: int = self.package.apply_file(
            self.session, fitted, files, out, options, new_segments
        )
        return count


@contextmanager
def _duckdb(
    threads: int | None, memory: str | None, progress: Callable[[float], None] | None, master: str
) -> Iterator[Engine]:
    from calibrant.engines import duckdb

    with duckdb.Session(threads=threads, memory_limit=memory, progress=progress) as session:
        yield Engine(session, duckdb)


@contextmanager
def _spark(
    threads: int | None, memory: str | None, progress: Callable[[float], None] | None, master: str
) -> Iterator[Engine]:
    from calibrant.engines import spark

    with spark.Spark(master, threads=threads, memory=memory, progress=progress) as session:
        yield Engine(session, spark)


#: every engine by name
ENGINES = {"duckdb": _duckdb, "spark": _spark}


@contextmanager
def open_engine(
    name: str = "duckdb",
    *,
    threads: int | None = None,
    memory_limit: str | None = None,
    progress: Callable[[float], None] | None = None,
    master: str | None = None,
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

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "s.csv"
    >>> _ = file.write_text("p,y\\n0.2,no\\n0.7,yes\\n")
    >>> with open_engine("duckdb", threads=1) as engine:
    ...     answer, coding = engine.rows([file], Names("p", "y")).ask(lambda rows: rows.look())
    >>> answer.rows, coding.pos_label
    (2, 'yes')
    """
    if name not in ENGINES:
        raise ParameterError(f"engine must be {' or '.join(ENGINES)}, but {name!r} came.")
    if master is not None and name != "spark":
        raise ParameterError("a master is for Spark: use it with the engine spark.")
    with ENGINES[name](threads, memory_limit, progress, master or "local[*]") as engine:
        yield engine
