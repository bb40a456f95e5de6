"""The papers' datasets: where they are, which tasks they hold, and their rows.

The data are not part of the project. They are looked for

1. in the folder that ``CALIBRANT_DATA`` names,
2. if that is not set, in ``shared/data`` beside the project,
3. if there is no such folder, on OpenML, through scikit-learn.

A folder holds gzipped CSV files and a ``manifest.json`` that says which columns are nominal, which
are no features, what is positive in each task, and the checksum of each file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache, lru_cache
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments import data_openml
from experiments.data_openml import PRIVATE, Known, known

__all__ = [
    "DataMissingError",
    "Task",
    "data_folder",
    "definition",
    "read",
    "read_arrays",
    "read_classes",
    "read_labels",
    "read_split",
    "task",
    "tasks",
]

ROOT = Path(__file__).resolve().parent.parent
VARIABLE, MANIFEST = "CALIBRANT_DATA", "manifest.json"
#: files that hold the rows of another one again (under another name or coding)
REPEATS = frozenset({"australian", "german-numer", "coil2000-raw"})
#: how the project calls the papers, and how a footnote does
PAPERS = {
    "zadrozny2002": "Zadrozny 2002",
    "niculescu2005": "Niculescu-Mizil 2005",
    "bella2009": "Bella 2009",
    "naeini2015": "Naeini 2015",
    "naeini2018": "Naeini 2018",
}

Entry = dict[str, Any]


class DataMissingError(FileNotFoundError):
    """A dataset, or the folder with all of them, is not there; the message says how to get it."""


class Task(NamedTuple):
    """A binary task: what is positive in one of the datasets."""

    name: str
    entry: Entry
    rule: dict[str, Any]

    @property
    def rows(self) -> int:
        return int(self.entry["rows"])


# --- where the data are ---------------------------------------------------------------------------


def _folder() -> Path:
    return Path(os.environ.get(VARIABLE) or ROOT.parent / "shared" / "data")


def data_folder() -> Path:
    """The folder with manifest.json, or a DataMissingError that says where it was looked for."""
    folder = _folder()
    if not (folder / MANIFEST).is_file():
        raise DataMissingError(
            f"the datasets must be in {folder}, but there is no {MANIFEST}. Set {VARIABLE} to the "
            "folder that holds it, or to nothing: shared/data or OpenML are looked at then."
        )
    return folder


def _is_local() -> bool:
    """Whether a folder is asked for, or there is one."""
    return bool(os.environ.get(VARIABLE)) or (_folder() / MANIFEST).is_file()


def _entries(wanted: str = "") -> list[Entry]:
    """All datasets: those of the folder; where there is none and none is asked for, OpenML's."""
    if _is_local():
        try:
            text = (data_folder() / MANIFEST).read_text(encoding="utf-8")
        except DataMissingError as error:
            raise DataMissingError(f"{wanted} is missing: {error}" if wanted else error) from None
        found: list[Entry] = json.loads(text)["datasets"]
        return found
    return data_openml.entries()


def _file(entry: Entry) -> Path:
    """The file of a dataset, whose checksum is looked at once."""
    path = data_folder() / entry["file"]
    if not path.is_file():
        raise DataMissingError(_how_to_get(entry))
    if "sha256" in entry and _checksum(path) != entry["sha256"]:
        raise ValueError(
            f"the checksum of {path} must be {entry['sha256']} (manifest.json), but is "
            f"{_checksum(path)}: the file is damaged, or another version. Replace it by the one "
            "that the manifest describes."
        )
    return path


@cache
def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _how_to_get(entry: Entry) -> str:
    source = f" It came from {entry['source']}." if entry.get("source") else ""
    text = f"{entry['name']} is missing: put {entry['file']} into {_folder()}.{source}"
    if not _is_local():
        return f"{text} The manifest.json that describes it belongs there, too."
    numbers = {(one.openml_id, one.openml_name) for one in _of(entry["name"]) if one.openml_id}
    if numbers:
        ((number, name),) = numbers
        text += (
            f" Or have it fetched from OpenML, where it is {name!r} ({number}): that is done "
            f"where {VARIABLE} is not set and shared/data is not beside the project."
        )
    return text


def _of(dataset: str) -> Iterator[Known]:
    return (one for one in known().values() if one.dataset == dataset)


# --- which tasks there are ------------------------------------------------------------------------


def tasks(least_rows: int) -> list[Task]:
    """All binary tasks of at least so many rows, each once, by name."""
    found: dict[object, Task] = {}
    for entry in _entries():
        if not _is_table(entry) or entry["name"] in REPEATS or entry["rows"] < least_rows:
            continue
        for rule in entry["tasks"]:
            if _is_binary(rule):
                key = (entry["name"], tuple(rule.get("positive", ())), rule.get("gt"))
                opposite = (entry["name"], _others(entry, rule), None)
                if key not in found and opposite not in found:
                    found[key] = Task(rule["name"], entry, rule)
    return sorted(found.values(), key=lambda task: task.name)


def _is_table(entry: Entry) -> bool:
    """Whether it is rows of features: some files hold words, or the outputs of networks."""
    return "openml" in entry or (
        entry["file"].endswith(".csv.gz") and bool(entry.get("n_features"))
    )


def _is_binary(rule: dict[str, Any]) -> bool:
    return "positive" in rule or "gt" in rule


def _others(entry: Entry, rule: dict[str, Any]) -> tuple[str, ...]:
    """The labels that are not positive: a task and its mirror image count once."""
    positive = {str(label) for label in rule.get("positive", ())}
    return tuple(label for label in entry["label_counts"] or () if label not in positive)


def task(name: str) -> Task:
    """A binary task by its name; or the first one of the dataset of that name.

    Raises
    ------
    DataMissingError
        If the papers have it, but it is not at hand: the message says how to get it.
    ValueError
        If no such task is known.
    """
    entry, rule = _find(name)
    if rule is None:
        rule = next((each for each in entry["tasks"] if _is_binary(each)), None)
    if rule is None or not _is_binary(rule):
        raise ValueError(f"{name} has no two classes: read it by read_classes.")
    return Task(rule["name"], entry, rule)


def _find(name: str) -> tuple[Entry, dict[str, Any] | None]:
    """The dataset of a task or of its own name, and the task if it is one."""
    every = [entry for entry in _entries(name) if _is_table(entry)]
    for entry in every:
        for rule in entry["tasks"]:
            if rule["name"] == name:
                return entry, rule
    for entry in every:
        if entry["name"] == name:
            return entry, None
    raise _unknown(name)


def _unknown(name: str) -> Exception:
    datasets = {one.dataset for one in known().values()}
    if name in PRIVATE:
        return DataMissingError(f"{name} is not at hand: {PRIVATE[name]}.")
    if name in known() or name in datasets:
        dataset = known()[name].dataset if name in known() else name
        return DataMissingError(_how_to_get({"name": dataset, "file": f"{dataset}.csv.gz"}))
    near = get_close_matches(name, sorted({*known(), *datasets}), n=3)
    hint = f" Is it {' or '.join(near)}?" if near else ""
    return ValueError(f"{name} is no task of the papers.{hint}")


def definition(task: Task | str) -> str:
    """One line: what is positive in a task, and which paper says so; for footnotes.

    The same whether the data are at hand or not.

    >>> definition("letter_p1")
    'letter_p1: positive is O (753 of 20,000 rows), as Niculescu-Mizil 2005 says'
    >>> definition("spambase")
    'spambase: positive is 1, spam (1,813 of 4,601 rows); no paper says so: the usual reading'
    """
    name = task if isinstance(task, str) else task.name
    one = known().get(name)
    if one is None:
        if isinstance(task, str):
            raise _unknown(task)
        labels = ", ".join(map(str, task.rule.get("positive", [f"above {task.rule.get('gt')}"])))
        return f"{name}: positive is {labels}; no paper says so: the usual reading"
    papers = " and ".join(PAPERS[paper] for paper in one.stated_by)
    said = f", as {papers} says" if papers else "; no paper says so: the usual reading"
    if one.n_pos is None:
        return f"{name}: each label is a class ({one.rows:,} rows){said}"
    meaning = f", {one.meaning}" if one.meaning else ""
    return f"{name}: positive is {_words(one)}{meaning} ({one.n_pos:,} of {one.rows:,} rows){said}"


def _words(one: Known) -> str:
    if one.above is not None:
        return f"a label above {one.above:g}"
    if len(one.positive) > 5:
        return f"{one.positive[0]} to {one.positive[-1]}"
    return " or ".join(one.positive)


# --- their rows -----------------------------------------------------------------------------------


class _Rows(NamedTuple):
    """All columns of a dataset, and which of the features are nominal."""

    frame: pd.DataFrame
    features: list[str]
    nominal: set[str]


def _rows(entry: Entry) -> _Rows:
    if "openml" in entry:
        return _online(entry)
    frame = pd.read_csv(_file(entry), dtype=str, keep_default_na=False)
    known_others = {"label", "split", *entry["non_feature_columns"]}
    features = [name for name in frame.columns if name not in known_others]
    nominal = set(features) if entry["nominal"] == "all" else set(entry["nominal"])
    return _Rows(frame, features, nominal)


def _online(entry: Entry) -> _Rows:
    """A dataset from OpenML, where categories are nominal and missing ones blank as in files."""
    frame = _fetched(entry["name"])
    if isinstance(frame, str):
        number, name = entry["openml"]
        raise DataMissingError(
            f"{entry['name']} is missing: it must come from OpenML, where it is {name!r} "
            f"({number}), but that failed ({frame}). Try again online, or put {entry['file']} and "
            f"its manifest.json into the folder that {VARIABLE} names."
        )
    frame = frame.copy()
    features = [name for name in frame.columns if name != "label"]
    nominal = {name for name in features if not pd.api.types.is_numeric_dtype(frame[name])}
    for name in nominal:
        frame[name] = frame[name].astype(object).where(frame[name].notna(), "").astype(str)
    return _Rows(frame, features, nominal)


#: datasets that were asked for in vain, and why: each cell of a table may ask again
_IN_VAIN: dict[str, str] = {}


@lru_cache(maxsize=8)
def _fetched(name: str) -> pd.DataFrame | str:
    """The rows, or why there are none."""
    entry = next(entry for entry in data_openml.entries() if entry["name"] == name)
    if name not in _IN_VAIN:
        try:
            return data_openml.fetch(entry)
        except (OSError, ValueError, HTTPException) as error:
            _IN_VAIN[name] = f"{type(error).__name__}: {error}"
    return _IN_VAIN[name]


def _part(frame: pd.DataFrame, entry: Entry, rule: dict[str, Any] | None) -> pd.DataFrame:
    """The rows that a task takes: all, or those of a part of the source's split."""
    wanted = (rule or {}).get("only_split")
    if wanted is None:
        return frame
    return frame[_split(frame, entry).isin([wanted] if isinstance(wanted, str) else wanted)]


def _split(frame: pd.DataFrame, entry: Entry) -> pd.Series:
    if "split" in frame:
        return frame["split"]
    if "openml" in entry:
        raise DataMissingError(
            f"OpenML does not say how {entry['name']} was split. {_how_to_get(entry)}"
        )
    raise ValueError(f"{entry['name']} has no split of its own.")


def _features(rows: _Rows, frame: pd.DataFrame) -> pd.DataFrame:
    features = {
        name: frame[name].where(frame[name] != "", "(missing)")
        if name in rows.nominal
        else pd.to_numeric(frame[name].where(frame[name] != "", None))
        for name in rows.features
    }
    return pd.DataFrame(features).reset_index(drop=True)


def _some(frame: pd.DataFrame, most: int | None, seed: int) -> pd.DataFrame:
    if most is None or len(frame) <= most:
        return frame
    return frame.sample(most, random_state=seed)


def read(task: Task, most: int | None, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Features (numbers, or strings for nominal columns) and labels 0/1 of at most ``most`` rows.

    Where there are more, a random draw of them, the same for the same seed. None means all, in the
    order of the file.
    """
    rows = _rows(task.entry)
    frame = _some(_part(rows.frame, task.entry, task.rule), most, seed)
    if "positive" in task.rule:
        y = frame["label"].isin([str(value) for value in task.rule["positive"]])
    else:
        y = pd.to_numeric(frame["label"]) > task.rule["gt"]
    return _features(rows, frame), y.to_numpy().astype(int)


def read_classes(
    name: str, most: int | None = None, seed: int = 0
) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Features as in `read`, and the number of each row's label among all, sorted as strings.

    By the name of a dataset or of any task of it; every label of the file is a class.
    """
    entry, _ = _find(name)
    rows = _rows(entry)
    frame = _some(rows.frame, most, seed)
    codes = np.unique(frame["label"].to_numpy(dtype=str), return_inverse=True)[1]
    return _features(rows, frame), codes.astype(np.intp)


def read_labels(
    name: str, columns: list[str], most: int | None = None, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Features as in `read` without some columns of the file, and these columns as text."""
    rows = _rows(_find(name)[0])
    frame = _some(rows.frame, most, seed)
    others = rows._replace(features=[each for each in rows.features if each not in columns])
    return _features(others, frame), frame[columns].reset_index(drop=True)


def read_split(name: str) -> NDArray[np.str_]:
    """In which part of the source's split ("train", "test", ...) each row is.

    By the name of a task, for the rows that ``read(task(name), None)`` gives; or of a dataset, for
    those of `read_classes`.
    """
    entry, rule = _find(name)
    rows = _rows(entry)
    frame = _part(rows.frame, entry, rule)
    return _split(frame, entry).to_numpy(dtype=str)


def read_arrays(name: str) -> dict[str, NDArray[Any]]:
    """The arrays of a dataset that is no table: word counts, or the outputs of a network."""
    found = [entry for entry in _entries(name) if entry["file"] == f"{name}.npz"]
    if not found:
        raise DataMissingError(
            f"{name} is missing, and OpenML does not have it in this form: put {name}.npz, with "
            f"its manifest.json, into {_folder()}, or into the folder that {VARIABLE} names."
        )
    with np.load(_file(found[0]), allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}
