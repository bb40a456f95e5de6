"""Tasks that come as probabilities: HDF5 files in the layout of CalArena.

A file holds ``{dataset}/{model}/{probas_cal,labels_cal,probas_test,labels_test}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arena.models import Scored, keep, kept_models
from benchmarks.arena.tasks import Task

ENDINGS = (".h5", ".hdf5")
PARTS = ("probas_cal", "labels_cal", "probas_test", "labels_test")


def take_in(source: Path, folder: Path) -> list[Task]:
    """Keep the probabilities of all files of a folder (or of one file) as the arena keeps its own.

    A dataset of several files is one task with the models of all of them. Labels may be codes or
    one-hot rows, and probabilities of two classes one column.
    """
    files = [source] if source.is_file() else sorted(_files(source))
    if not files:
        raise FileNotFoundError(
            f"HDF5 files ({' or '.join(ENDINGS)}) must be in {source}, but there are none. "
            "Name the folder that holds CalArena's files."
        )
    found: dict[str, dict[str, Scored]] = {}
    for path in files:
        for dataset, model, scored in read(path):
            found.setdefault(dataset, {})[model] = scored
    tasks = []
    for dataset, models in sorted(found.items()):
        name = re.sub(r"[^\w.-]", "_", dataset)
        if kept_models(folder, name) != list(models):
            keep(folder, name, models)
        several = next(iter(models.values())).p.shape[1] > 2
        tasks.append(Task(name, "calarena", dataset, dataset, several))
    return tasks


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.suffix in ENDINGS)


def read(path: Path) -> Iterator[tuple[str, str, Scored]]:
    """Dataset, model and probabilities of every experiment in a file."""
    try:
        import h5py
    except ImportError:
        raise ImportError("h5py must be installed to read HDF5 files: pip install h5py") from None

    with h5py.File(path, "r") as file:
        for dataset, models in file.items():
            for model, group in models.items():
                missing = [part for part in PARTS if part not in group]
                if missing:
                    raise ValueError(
                        f"{path}: {dataset}/{model} must hold {', '.join(PARTS)}, but lacks "
                        f"{', '.join(missing)}"
                    )
                p, y, q, z = (group[part][()] for part in PARTS)
                yield dataset, model, Scored(_rows(p), _codes(y), _rows(q), _codes(z))


def _rows(p: Any) -> Any:
    p = np.asarray(p, dtype=np.float64)
    if p.ndim == 1 or p.shape[1] == 1:
        p = np.column_stack([1.0 - p.ravel(), p.ravel()])
    return p / p.sum(axis=1, keepdims=True)


def _codes(y: Any) -> Any:
    y = np.asarray(y)
    return (y.argmax(axis=1) if y.ndim == 2 and y.shape[1] > 1 else y.ravel()).astype(np.intp)
