"""The paper's forty datasets by name, the thirty-eight that are at hand, and Table 2."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments import table
from experiments.data import definition, read, task
from experiments.papers.cells import Cell, Table
from experiments.papers.published import published

__all__ = ["CAP", "DATASETS", "MISSING", "TABLE_2", "rows"]

#: rows of a dataset that a run uses, at most; drawn anew for each run
CAP = 5000
WHOLE = 1_000_000


class Dataset(NamedTuple):
    """The task that a dataset's name stands for, whether only its complete rows, and a remark.

    The paper names its datasets and nothing else: all definitions are the usual ones.
    """

    task: str
    remark: str = ""
    complete: bool = False


#: in the paper's order and spelling (its footnote 7)
DATASETS = {
    "spect": Dataset("spect", "training and test part together"),
    "adult": Dataset("adult", "incomplete rows kept"),
    "breast": Dataset("breast", "Wisconsin, incomplete rows kept"),
    "pageblocks": Dataset("pageblocks"),
    "pendigits": Dataset("pendigits_5"),
    "mamography": Dataset("mammography"),
    "satimage": Dataset("satimage_4"),
    "australian": Dataset("australian"),
    "code rna": Dataset("cod_rna", "the training part"),
    "colon cancer": Dataset("colon_cancer"),
    "covtype": Dataset("covtype_binary_libsvm"),
    "letter unbalanced": Dataset("letter_unbalanced"),
    "letter balanced": Dataset("letter_balanced"),
    "diabetes": Dataset("diabetes_libsvm"),
    "duke": Dataset("duke", "all 49 tumours"),
    "fourclass": Dataset("fourclass"),
    "german numer": Dataset("german_numer"),
    "heart": Dataset("heart"),
    "ijcnn1": Dataset("ijcnn1", "all three parts"),
    "ionosphere scale": Dataset("ionosphere_scale"),
    "liver disorders": Dataset("liver_disorders", "the old 345 rows"),
    "mushrooms": Dataset("mushrooms"),
    "sonar scale": Dataset("sonar_scale"),
    "splice": Dataset("splice_libsvm", "training and test part together"),
    "svmguide1": Dataset("svmguide1", "training and test part together"),
    "svmguide3": Dataset("svmguide3", "training and test part together"),
    "coil2000": Dataset("coil2000", "training and test part together"),
    "balance": Dataset("balance"),
    "breast cancer": Dataset("breast", "Wisconsin, complete rows only", complete=True),
    "leu": Dataset("leu", "training and test part together"),
    "w1a": Dataset("w1a"),
    "thyroid sick": Dataset("thyroid_sick"),
    "scene": Dataset("scene"),
    "uscrime": Dataset("uscrime"),
    "solar": Dataset("solar_m0"),
    "car34": Dataset("car34"),
    "car4": Dataset("car4"),
    "protein homology": Dataset("protein_homology"),
}
MISSING = ("ad", "gisette scale")


@lru_cache(maxsize=2)
def rows(dataset: str, most: int, seed: int) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Features and labels of at most so many rows of a dataset."""
    found = DATASETS[dataset]
    X, y = read(task(found.task), WHOLE if found.complete else most, seed)
    if not found.complete:
        return X, y
    whole = X.notna().all(axis=1).to_numpy()
    return X[whole].reset_index(drop=True), y[whole]


def cells(quick: bool) -> list[Cell]:
    return [{"dataset": name} for name in DATASETS]


def run(dataset: str) -> dict[str, float | str | int]:
    """The whole dataset: its size, its rarer class, its features."""
    X, y = rows(dataset, WHOLE, 0)
    numbers = sum(pd.api.types.is_numeric_dtype(kind) for kind in X.dtypes)
    share = float(np.mean(y))
    return {
        "rows": len(y),
        "positives": int(y.sum()),
        "minority share": min(share, 1.0 - share),
        "numbers": int(numbers),
        "words": X.shape[1] - int(numbers),
        "incomplete rows": int((X.isna() | (X == "(missing)")).any(axis=1).sum()),
    }


QUARTILES = {"min": 0.0, "Q1": 0.25, "median": 0.5, "Q3": 0.75, "max": 1.0}


def five(values: pd.Series) -> dict[str, float]:
    """Least, quartiles (the middles of the halves, which the published ones agree with), most."""
    found = np.quantile(values, list(QUARTILES.values()), method="hazen")
    return dict(zip(QUARTILES, map(float, found), strict=True))


def page(frame: pd.DataFrame) -> str:
    """The five figures beside the published ones, and the list of datasets."""
    known = published("naeini2018", "2").set_index(["measure", "method"])["value"].astype(float)
    lines = []
    for measure, column, form in (("size", "rows", ",.0f"), ("minority share",) * 2 + (".3f",)):
        ours = five(frame[column])
        there = (f"{known[measure, name]:{form}}" for name in QUARTILES)
        lines.append((measure, f"published, {len(DATASETS) + len(MISSING)} datasets", *there))
        lines.append(("", f"ours, {len(frame)}", *(f"{ours[q]:{form}}" for q in QUARTILES)))
    summary = table(("", "", *QUARTILES), lines)
    every = [_line(row) for row in frame.to_dict("records")]
    every += [(name, *("",) * 6, "not at hand") for name in MISSING]
    head = ("dataset", "rows", "minority share", "positive", "numbers", "words", "rows of a run")
    return f"{summary}\n\n{table((*head, 'remark'), every)}"


def _line(row: dict[str, Any]) -> tuple[object, ...]:
    told = DATASETS[row["dataset"]]
    positive = definition(told.task).split(": positive is ")[1].split(" (")[0]
    size = (f"{row['rows']:,}", f"{row['minority share']:.3f}")
    capped = f"{CAP:,}" if row["rows"] > CAP else "all"
    kinds = (row["numbers"], row["words"])
    return (row["dataset"], *size, positive, *kinds, capped, told.remark)


TABLE_2 = Table("2", "Table 2: the datasets", cells, run, page, repeats="")
