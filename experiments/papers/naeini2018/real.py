"""Tables 3 to 6 and 8: one set of runs, five tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments.papers.cells import Table
from experiments.papers.naeini2018.crossval import cells, run
from experiments.papers.naeini2018.elite import table_8
from experiments.papers.naeini2018.gains import table_3
from experiments.papers.naeini2018.grids import MAIN
from experiments.papers.naeini2018.models import MODELS
from experiments.papers.naeini2018.ranks import (
    TABLES,
    artefact,
    everything,
    followed,
    table_of_ranks,
    table_of_readings,
)

__all__ = ["TABLES_3_TO_8"]

WORDS = {"LR": "logistic regression", "SVM": "the support vector machine", "NB": "naive Bayes"}


def complete(frame: pd.DataFrame) -> pd.DataFrame:
    """The datasets that all three models have a run of: a rank must be among the same datasets."""
    own = frame[frame["model"].isin(MODELS)]
    models = own.groupby("dataset")["model"].nunique()
    return frame[frame["dataset"].isin(models.index[models == len(MODELS)])]


def page(frame: pd.DataFrame) -> str:
    """All five tables, then what they do not show."""
    frame = complete(frame)
    if frame["dataset"].nunique() < 2:
        return "*Fewer than two datasets have been run with all models.*"
    runs = frame.groupby(["dataset", "model"]).size()
    parts = [
        f"{frame['dataset'].nunique()} datasets; runs of each: "
        f"{' to '.join(map(str, sorted({runs.min(), runs.max()})))}.",
        "### Table 3: relative gain of ENIR over the base, 95 % intervals",
        table_3(frame),
    ]
    for model, number in TABLES.items():
        parts += [
            f"### Table {number}: average ranks with {WORDS[model]}",
            table_of_ranks(frame, model),
        ]
    parts += [
        "### Tables 4 to 6: which reading comes nearest to the published ranks",
        table_of_readings(frame),
        followed(),
        "### ECE in three readings, mean over folds and datasets",
        artefact(frame),
        "### Table 8: ELiTE against ENIR, median difference and Wilcoxon's p",
        table_8(frame),
        "### Average ranks of all methods together, of the predictions of all folds together",
        everything(frame),
    ]
    return "\n\n".join(parts)


def draw(frame: pd.DataFrame, folder: Path) -> list[str]:
    from experiments.papers.naeini2018.drawing import critical_differences

    frame = complete(frame)
    return [
        critical_differences(frame, measure, folder / f"naeini2018_ranks_{name}.png")
        for measure, name in (
            ("RMSE", "rmse"),
            (f"ECE{MAIN.suffix}", "ece"),
            (f"ECE, ties together{MAIN.suffix}", "ece_ties"),
        )
    ]


TABLES_3_TO_8 = Table(
    "3-6", "Tables 3 to 6, and 8: the datasets", cells, run, page, times=(" time",), figures=draw
)
