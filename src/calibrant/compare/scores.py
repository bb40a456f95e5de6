"""Scores of methods over datasets: the table, gains and losses, and mean ranks; 1 is the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from calibrant.array_types import Array
from calibrant.data.columns import to_gappy_matrix
from calibrant.errors import InputError, ParameterError
from calibrant.metrics.tables import check_flag
from calibrant.result_tables import (
    PlainFields,
    PrintsAsTable,
    Readable,
    ResultTable,
    TableColumn,
    TableRow,
    frame_of,
    shown_p,
)

# --------------------------------------------------------------------------------------------------
# What the results of comparisons share: how they print, and how they become values and frames


class Result(PlainFields, Readable):
    """Base of the results of comparisons, which are frozen values."""


class Tabular(PrintsAsTable, Result):
    """Base of the results that print as a table."""

    def _head(self) -> tuple[str, ...]:
        """The titles of the columns."""
        raise NotImplementedError

    def _rows(self) -> list[tuple[Any, ...]]:
        """The lines of values; the first of each is a name."""
        raise NotImplementedError

    def _below(self) -> list[str]:
        """The lines under the table."""
        raise NotImplementedError

    def to_frame(self, backend: str | None = None) -> Any:
        """The table as a frame: pandas, polars or Arrow, whichever is there.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the first of them that is installed.
        """
        columns = map(list, zip(*self._rows(), strict=True))
        return frame_of(dict(zip(self._head(), columns, strict=True)), backend)

    def _table(self) -> ResultTable:
        head = self._head()
        columns = [TableColumn(title, "right" if j else "left") for j, title in enumerate(head)]
        shown = [SHOWN.get(title, str) for title in head]
        rows = [
            TableRow(tuple(show(value) for show, value in zip(shown, row, strict=True)))
            for row in self._rows()
        ]
        return ResultTable(columns, rows, self._below())


def shown_number(value: float | None, digits: int = 3) -> str:
    """A number with so many decimals; a dash where there is none."""
    if value is None:
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    small = 0.0 < abs(value) < 0.5 * 10.0**-digits
    text = f"{value:.{digits}g}" if small else f"{value:.{digits}f}"
    return text.replace("-", "−") if float(text) != 0.0 else text.lstrip("-")


def percent(level: float) -> str:
    """A level as people write it, such as "95 %"."""
    return f"{100 * level:g} %"


#: how the values of a column are printed, by its title; all others as text
SHOWN: dict[str, Callable[[Any], str]] = {
    "mean rank": shown_number,
    "median difference": lambda value: shown_number(value, 4),
    "z": lambda value: shown_number(value, 2),
    "p": shown_p,
    "Holm's p": shown_p,
    "better": lambda name: name or "not shown",
}


# --- The mean rank of each method over the datasets; 1 is the best --------------------------------


#: how far the mean of published ranks, which are rounded, may be off
ROUNDED = 0.01


@dataclass(frozen=True, repr=False)
class Ranks(Result):
    """Mean ranks of methods over datasets: from `average_ranks`, or as a paper printed them.

    The rank tests take it in place of scores, so that a published table of mean ranks can be
    tested without the figures behind it.

    Parameters
    ----------
    names : sequence of str
        The methods.
    mean : sequence of float
        The mean rank of each; 1 is the best. They sum to k(k + 1)/2, but for rounding.
    datasets : int
        How many datasets were ranked.
    tied : int, optional
        Σ(t³ − t) over all groups of t equal scores of a dataset; only the correction of `friedman`
        for ties asks for it.
    best : sequence of int, optional
        On how many datasets each method is the best, or among the best.

    Notes
    -----
    O(k).

    Examples
    --------
    >>> printed = Ranks(["Isotonic", "BBQ", "ENIR"], [1.95, 2.6, 1.45], 40)
    >>> printed["ENIR"]
    1.45
    """

    names: tuple[str, ...]
    mean: tuple[float, ...]
    datasets: int
    tied: int | None = None
    best: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        count = self.datasets
        if not isinstance(count, Integral) or isinstance(count, bool) or count < 2:
            raise InputError(f"datasets must be a whole number of at least 2, but {count!r} came.")
        try:
            mean = tuple(float(rank) for rank in self.mean)
        except (TypeError, ValueError) as wrong:
            raise InputError(f"mean must be a list of numbers, but {self.mean!r} came.") from wrong
        if len(mean) < 2:
            raise InputError(f"ranks of at least 2 methods are needed, but {len(mean)} came.")
        k = len(mean)
        if not all(1.0 - ROUNDED <= rank <= k + ROUNDED for rank in mean):
            raise InputError(f"mean ranks of {k} methods must lie in [1, {k}], but {mean} came.")
        if not math.isclose(sum(mean) / k, (k + 1) / 2, abs_tol=ROUNDED, rel_tol=0.0):
            raise InputError(
                f"mean ranks of {k} methods must sum to {k * (k + 1) / 2:g}, but they sum to "
                f"{sum(mean):g}. Give all methods that were ranked together."
            )
        object.__setattr__(self, "names", check_names(self.names, k))
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "datasets", int(count))
        if self.tied is not None:
            _check_count("tied", self.tied, int(count) * (k**3 - k))
            object.__setattr__(self, "tied", int(self.tied))
        if self.best is not None:
            if len(self.best) != k:
                raise InputError(f"best must have {k} entries, but {len(self.best)} came.")
            for wins in self.best:
                _check_count("best", wins, int(count))
            object.__setattr__(self, "best", tuple(int(wins) for wins in self.best))

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> float:
        """The mean rank of a method."""
        if name not in self.names:
            raise KeyError(name)
        return self.mean[self.names.index(name)]

    @property
    def order(self) -> tuple[int, ...]:
        """The columns, the best first; equal ranks in the order they came."""
        return tuple(sorted(range(len(self.mean)), key=self.mean.__getitem__))


def _check_count(name: str, value: Any, most: int) -> None:
    """Refuse what is no whole number from 0 to ``most``."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not 0 <= int(value) <= most:
        raise InputError(f"{name} must be whole, from 0 to {most}, but {value!r} came.")


def average_ranks(scores: Any, *, larger_is_better: bool, names: Any = None) -> Ranks:
    """The mean rank of each method: 1 if it was the best on every dataset. Smaller is better.

    Parameters
    ----------
    scores : array-like of shape (datasets, methods), frame, or mapping of name to column
        One figure per dataset and method, already averaged over repetitions.
    larger_is_better : bool
        True for accuracy and AUC, False for errors and losses. There is no default.
    names : sequence of str, optional
        The methods, where the scores are an array; default: "method 1", "method 2", …

    Returns
    -------
    Ranks

    Notes
    -----
    Within each dataset the best method has rank 1, the next rank 2, and so on. Ties: t equal
    scores share the mean of the t ranks. Equal means equal to the last bit: round figures that
    differ by the noise of arithmetic only. Infinite scores are ranked, missing ones refused.
    O(Nk²) for N datasets and k methods. There are no weights: every dataset counts once.

    References
    ----------
    .. [1] J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of
       Machine Learning Research 7, 2006.

    Examples
    --------
    >>> auc = {"tree": [0.80, 0.71, 0.90], "forest": [0.85, 0.71, 0.93]}
    >>> average_ranks(auc, larger_is_better=True)["forest"]
    1.1666666666666667
    """
    larger = check_flag("larger_is_better", larger_is_better)
    values, called = read_scores(scores, names)
    signed = -values if larger else values
    less = np.count_nonzero(signed[:, None, :] < signed[:, :, None], axis=2)
    same = np.count_nonzero(signed[:, None, :] == signed[:, :, None], axis=2)
    ranks = less + (same + 1) / 2.0  # within each row: equals share a rank
    tied = int((same * same - 1).sum())  # each of t equal scores adds t² − 1
    best = (values == (values.max if larger else values.min)(axis=1)[:, None]).sum(axis=0)
    mean = ranks.sum(axis=0) / len(ranks)
    return Ranks(called, tuple(mean.tolist()), len(ranks), tied, tuple(best.tolist()))


def ranks_of(scores: Any, larger_is_better: bool, names: Any) -> Ranks:
    """The ranks of some scores; ranks as they are."""
    if not isinstance(scores, Ranks):
        return average_ranks(scores, larger_is_better=larger_is_better, names=names)
    check_flag("larger_is_better", larger_is_better)
    if names is not None:
        raise InputError("names are for arrays, but Ranks came, which have their own.")
    return scores


def rank_error(ranks: Ranks) -> float:
    """The standard error of a difference of two mean ranks, if all methods are alike."""
    k = len(ranks)
    return math.sqrt(k * (k + 1) / (6.0 * ranks.datasets))


# --- Reads scores of methods over datasets as an array with names ---------------------------------


def read_scores(
    scores: Any, names: Any = None, *, finite: bool = False
) -> tuple[Array, tuple[str, ...]]:
    """Scores as a matrix, a line for each dataset and a column for each method, and the methods'
    names.

    They may come as an array, a frame, or a mapping of name to column; without gaps.
    """
    values, found = _score_columns(scores)
    if found is not None and names is not None:
        raise InputError(
            "names are for arrays, but a frame or mapping came with names of its own: "
            f"{list(found)[:8]}. Leave names out, or rename its columns."
        )
    if values.ndim != 2:
        raise InputError(
            "scores must be 2-d, a row for each dataset and a column for each method, but their "
            f"shape is {values.shape}."
        )
    rows, columns = values.shape
    if rows < 2 or columns < 2:
        raise InputError(
            "scores must have at least 2 datasets (rows) and 2 methods (columns), but "
            f"{rows} × {columns} came."
        )
    given = found if found is not None else names
    if given is None:
        given = [f"method {number}" for number in range(1, columns + 1)]
    called = check_names(given, columns)
    _check_known(values, called, finite)
    return values, called


def _score_columns(scores: Any) -> tuple[Array, list[str] | None]:
    """Scores as a matrix, and the names of its columns if they came."""
    if not isinstance(scores, Mapping):
        try:
            values, found = to_gappy_matrix(scores, "scores")
        except InputError as wrong:
            if not hasattr(scores, "columns"):
                raise
            raise InputError(
                f"{wrong} Keep the methods' columns only; names of datasets belong elsewhere."
            ) from wrong
        return values, None if found is None else [str(name) for name in found]
    columns = [to_gappy_matrix(column, f"scores of {name}")[0] for name, column in scores.items()]
    for name, column in zip(scores, columns, strict=True):
        if column.ndim != 1:
            raise InputError(
                f"scores of {name} must be one column, but their shape is {column.shape}."
            )
    lengths = {str(name): len(column) for name, column in zip(scores, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise InputError(
            f"scores must have one entry per dataset for every method, but the lengths are "
            f"{lengths}. Keep the datasets that all methods have."
        )
    values = np.column_stack(columns) if columns else np.empty((0, 0))
    return values, list(lengths)


def check_names(names: Any, columns: int) -> tuple[str, ...]:
    """The names of the methods, checked."""
    if isinstance(names, (str, bytes)) or not hasattr(names, "__iter__"):
        raise InputError(f"names must be a list of {columns} names, but {names!r} came.")
    called = tuple(str(name) for name in names)
    if len(called) != columns:
        raise InputError(f"names must be {columns}, one per method, but {len(called)} came.")
    twice = sorted({name for name in called if called.count(name) > 1})
    if twice:
        raise InputError(f"names must differ, but these came more than once: {twice[:8]}.")
    return called


def _check_known(values: Array, names: Sequence[str], finite: bool) -> None:
    """Refuse scores that are missing or, where they must be ``finite``, infinite."""
    bad = ~np.isfinite(values) if finite else np.isnan(values)
    if bad.any():
        row, column = (int(place) for place in np.argwhere(bad)[0])
        word = "finite" if finite else "complete"
        kind = "missing, NaN or infinite" if finite else "missing or NaN"
        rows = int(bad.any(axis=1).sum())
        raise InputError(
            f"scores must be {word}: {rows} of {len(values)} datasets have a value that is {kind} "
            f"(first at row {row}, {names[column]!r}). Leave out those datasets, or the method."
        )


def read_pair(first: Any, second: Any, names: tuple[str, str]) -> tuple[Array, Array]:
    """Two finite columns of the same length."""
    pair = []
    for values, name in zip((first, second), names, strict=True):
        column, _ = to_gappy_matrix(values, name)
        if column.ndim == 2 and column.shape[1] == 1:
            column = column[:, 0]
        if column.ndim != 1:
            raise InputError(
                f"{name} must be one column, an entry per dataset, but its shape is {column.shape}."
            )
        bad = ~np.isfinite(column)
        if bad.any():
            raise InputError(
                f"{name} must be finite: {int(bad.sum())} of {len(column)} are missing, NaN or "
                f"infinite (first at row {int(np.argmax(bad))}). Leave out those datasets."
            )
        pair.append(column)
    if len(pair[0]) != len(pair[1]):
        raise InputError(
            f"{names[0]} and {names[1]} must have one entry per dataset, but {names[0]} has "
            f"{len(pair[0])} and {names[1]} has {len(pair[1])}."
        )
    return pair[0], pair[1]


def place_of(control: Any, names: Sequence[str]) -> int:
    """The number of the control's column, by its name or number."""
    if isinstance(control, str) and control in names:
        return list(names).index(control)
    whole = isinstance(control, Integral) and not isinstance(control, (bool, np.bool_))
    if whole and 0 <= int(control) < len(names):
        return int(control)
    raise ParameterError(
        f"control must be the name of a method ({', '.join(map(repr, names))}) or its column, 0 to "
        f"{len(names) - 1}, but {control!r} came."
    )
