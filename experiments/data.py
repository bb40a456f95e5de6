"""The papers' datasets: where they are, which binary tasks they hold, and their rows.

The data are not part of the project. They are looked for in the folder that ``CALIBRANT_DATA``
names, else in ``shared/data`` beside the project: gzipped CSV files and a ``manifest.json`` that
says which columns are nominal, which are no features, and what is positive in each task.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

__all__ = ["DataMissingError", "Task", "data_folder", "read", "tasks"]

ROOT = Path(__file__).resolve().parent.parent
#: files that hold the rows of another one again (under another name or coding)
REPEATS = frozenset({"australian", "german-numer", "coil2000-raw"})


class DataMissingError(FileNotFoundError):
    """The folder with the datasets is not there."""


class Task(NamedTuple):
    """A binary task: what is positive in one of the files."""

    name: str
    entry: dict[str, Any]
    rule: dict[str, Any]

    @property
    def rows(self) -> int:
        return int(self.entry["rows"])


def data_folder() -> Path:
    """The folder with manifest.json, or a DataMissingError that says where it was looked for."""
    folder = Path(os.environ.get("CALIBRANT_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "manifest.json").is_file():
        raise DataMissingError(
            f"the datasets must be in {folder}, but there is no manifest.json. Set CALIBRANT_DATA "
            "to the folder that holds it."
        )
    return folder


def tasks(least_rows: int) -> list[Task]:
    """All binary tasks of at least so many rows, each once, by name."""
    manifest = json.loads((data_folder() / "manifest.json").read_text(encoding="utf-8"))
    found: dict[object, Task] = {}
    for entry in manifest["datasets"]:
        usable = entry["file"].endswith(".csv.gz") and entry.get("n_features")
        if not usable or entry["name"] in REPEATS or entry["rows"] < least_rows:
            continue
        for rule in entry["tasks"]:
            if "positive" in rule or "gt" in rule:
                key = (entry["name"], tuple(rule.get("positive", ())), rule.get("gt"))
                opposite = (entry["name"], _others(entry, rule), None)
                if key not in found and opposite not in found:
                    found[key] = Task(rule["name"], entry, rule)
    return sorted(found.values(), key=lambda task: task.name)


def _others(entry: dict[str, Any], rule: dict[str, Any]) -> tuple[str, ...]:
    """The labels that are not positive: a task and its mirror image count once."""
    positive = {str(label) for label in rule.get("positive", ())}
    return tuple(label for label in entry["label_counts"] or () if label not in positive)


def read(task: Task, most: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Features (numbers, or strings for nominal columns) and labels 0/1 of at most ``most`` rows.

    Where there are more, a random draw of them, the same for the same seed.
    """
    frame = pd.read_csv(data_folder() / task.entry["file"], dtype=str, keep_default_na=False)
    wanted = task.rule.get("only_split")
    if wanted is not None:
        frame = frame[frame["split"].isin([wanted] if isinstance(wanted, str) else wanted)]
    if len(frame) > most:
        frame = frame.sample(most, random_state=seed)
    label = frame["label"]
    if "positive" in task.rule:
        y = label.isin([str(value) for value in task.rule["positive"]])
    else:
        y = pd.to_numeric(label) > task.rule["gt"]
    known = {"label", "split", *task.entry["non_feature_columns"]}
    columns = [name for name in frame.columns if name not in known]
    nominal = task.entry["nominal"]
    words = set(columns) if nominal == "all" else set(nominal)
    features = {
        name: frame[name].where(frame[name] != "", "(missing)")
        if name in words
        else pd.to_numeric(frame[name].where(frame[name] != "", None))
        for name in columns
    }
    return pd.DataFrame(features).reset_index(drop=True), y.to_numpy().astype(int)
