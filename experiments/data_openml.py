"""The tasks by name, and their rows from OpenML where the collected files are not at hand.

``tasks.csv`` says of each task what is positive and how many rows are, who says so (the papers that
state it in their text), and the number and name of its dataset on OpenML. Not all are there in the
form that the papers used: those without a number are not fetched.
"""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

__all__ = ["PRIVATE", "Known", "entries", "fetch", "known"]

FILE = Path(__file__).parent / "tasks.csv"

#: what the papers used and nobody else can have, or may pass on
PRIVATE = {
    "cap": "pneumonia patients, private to the authors of Naeini 2015",
    "kdd98": "the donors of KDD Cup 1998, whose terms keep it out",
    "hs": "the hyper-spectral image IndianPine92 in the authors' form (Niculescu 2005)",
    "slac": "particle physics, private to the authors of Niculescu 2005",
    "medis": "medical data, private to the authors of Niculescu 2005",
    "mg": "medical data, private to the authors of Niculescu 2005",
    "ad": "Internet advertisements (Naeini 2018), which is not in the collection",
    "gisette": "Gisette, scaled (Naeini 2018), which is not in the collection",
}


class Known(NamedTuple):
    """A line of tasks.csv."""

    task: str
    dataset: str
    rows: int
    n_pos: int | None
    positive: tuple[str, ...]
    above: float | None
    meaning: str
    stated_by: tuple[str, ...]
    openml_id: int | None
    openml_name: str


@lru_cache
def known() -> dict[str, Known]:
    """All tasks of the collection, by name."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return {line["task"]: _read(line) for line in csv.DictReader(file)}


def _read(line: dict[str, str]) -> Known:
    return Known(
        line["task"],
        line["dataset"],
        int(line["rows"]),
        int(line["n_pos"]) if line["n_pos"] else None,
        tuple(line["positive"].split()),
        float(line["above"]) if line["above"] else None,
        line["meaning"],
        tuple(line["stated_by"].split()),
        int(line["openml_id"]) if line["openml_id"] else None,
        line["openml_name"],
    )


def entries() -> list[dict[str, Any]]:
    """The datasets that OpenML has, described as the manifest of the collected files does."""
    found: dict[str, dict[str, Any]] = {}
    for one in known().values():
        if one.openml_id is None:
            continue
        empty = {
            "name": one.dataset,
            "file": f"{one.dataset}.csv.gz",
            "openml": (one.openml_id, one.openml_name),
            "rows": one.rows,
            "tasks": [],
        }
        rule = {"name": one.task, "n_pos": one.n_pos}
        if one.positive:
            rule["positive"] = list(one.positive)
        found.setdefault(one.dataset, empty)["tasks"].append(rule)
    return [{**entry, "label_counts": _counts(entry)} for entry in found.values()]


def _counts(entry: dict[str, Any]) -> dict[str, int] | None:
    """The rows of each label, where the tasks name all of them."""
    pairs = [(rule["positive"], rule["n_pos"]) for rule in entry["tasks"] if "positive" in rule]
    counts = {labels[0]: n_pos for labels, n_pos in pairs if len(labels) == 1}
    return counts if sum(counts.values()) == entry["rows"] else None


def fetch(entry: dict[str, Any]) -> pd.DataFrame:
    """The rows of a dataset from OpenML, with columns as they are there and a ``label``.

    scikit-learn keeps what it has fetched in its own folder. Rows and positives are counted: OpenML
    has several versions of some datasets, and only one of them is that of the papers.

    Raises
    ------
    OSError
        If it cannot be fetched.
    ValueError
        If what came is not the dataset that is meant.
    """
    from sklearn.datasets import fetch_openml

    number, name = entry["openml"]
    came = fetch_openml(data_id=number, as_frame=True, parser="auto")
    frame = came.data.reset_index(drop=True)
    frame["label"] = came.target.astype(str).str.strip().to_numpy()
    if len(frame) != entry["rows"]:
        raise ValueError(f"{name} has {len(frame)} rows there, but {entry['rows']} are meant")
    for rule in entry["tasks"]:
        n_pos = int(frame["label"].isin(rule.get("positive", ())).sum())
        if "positive" in rule and n_pos != rule["n_pos"]:
            raise ValueError(
                f"{name} has {n_pos} rows of {', '.join(rule['positive'])} there, but "
                f"{rule['n_pos']} are meant"
            )
    return frame
