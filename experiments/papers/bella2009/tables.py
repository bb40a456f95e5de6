"""Tables 1 to 3 beside the published ones: by dataset, order by order, and what ties do."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pandas as pd

import calibrant as cal
from experiments import table
from experiments.papers.bella2009.repetition import (
    BY_LABEL,
    DATASETS,
    METHODS,
)
from experiments.papers.bella2009.summaries import by_dataset, by_model, complete, p_text, runs
from experiments.papers.beside import Beside, beside, counted, orders, positives, told_within, wide
from experiments.papers.published import published

__all__ = [
    "AVERAGE",
    "TABLES",
    "cells_beside",
    "distance",
    "page",
    "page_sizes",
    "printed",
    "published_wins",
    "singles",
]

#: the published table of each measure, and the measures of ours that are held against it
TABLES = {"MSE": "3", "CalBin": "2", BY_LABEL: "2", "CalBin as sorted": "2"}
AVERAGE = "average"
#: a published figure is the mean of so many repetitions, each with four models
REPETITIONS = 100
DIGITS = 4


@lru_cache
def printed(measure: str) -> pd.DataFrame:
    """The published figures of a measure: datasets (and their average) × methods."""
    found = published("bella2009", TABLES[measure])
    return found.pivot(index="dataset", columns="method", values="value")[list(METHODS)]


def cells_beside(frame: pd.DataFrame, measure: str) -> dict[str, dict[str, Beside]]:
    """Published figures beside ours, by dataset and method, and the average row.

    A run is the mean over the four models of one repetition.
    """
    given, found = printed(measure), runs(complete(frame), measure)
    groups = {}
    for dataset in [name for name in DATASETS if name in found.index.get_level_values("dataset")]:
        part = found.loc[dataset]
        groups[dataset] = {
            name: beside(float(given.loc[dataset, name]), part[name], DIGITS, REPETITIONS)
            for name in METHODS
        }
    mean = found.groupby("seed").mean()[found.groupby("seed").size() == len(groups)]
    if len(groups) == len(DATASETS) and len(mean):
        groups[AVERAGE] = {
            name: beside(float(given.loc[AVERAGE, name]), mean[name], DIGITS, REPETITIONS)
            for name in METHODS
        }
    return groups


def singles(groups: dict[str, dict[str, Beside]]) -> list[Beside]:
    """The figures of datasets, without their averages."""
    return [cell for name, cells in groups.items() if name != AVERAGE for cell in cells.values()]


def by_dataset_page(frame: pd.DataFrame, measure: str) -> str:
    """The published table beside ours, and in how much they agree."""
    groups = cells_beside(frame, measure)
    single = singles(groups)
    gap = np.mean([abs(cell.published - cell.mean) for cell in single])
    kept = [orders(cells).split(" ") for name, cells in groups.items() if name != AVERAGE]
    pairs = f"{sum(int(k[0]) for k in kept)} of {sum(int(k[2]) for k in kept)}"
    told = (
        f"Of the published figures {counted(single)}; {pairs} pairs of methods are in the "
        f"published order; mean distance from the published figures {gap:.4f}. "
        f"{told_within(single)}"
    )
    numbered = {
        f"{DATASETS.index(name) + 1} {name}" if name in DATASETS else f"**{name}**": cells
        for name, cells in groups.items()
    }
    return f"{told}\n\n{wide(numbered)}"


# --- ties -----------------------------------------------------------------------------------------


def distance(found: pd.DataFrame, measure: str, column: str, method: str) -> float:
    """Mean distance over datasets of a column of ours from a published one."""
    given, ours = printed(measure)[method], found[column]
    return float((ours - given.reindex(ours.index)).abs().mean())


def ties(frame: pd.DataFrame) -> str:
    """CalBin of each method with ties together, as they come, and by label; the published one."""
    full = complete(frame)
    words = {
        "CalBin": "together: a case carries the frequency of its tie",
        "CalBin as sorted": "as the rows come",
        BY_LABEL: "by label",
    }
    rows = []
    for measure, text in words.items():
        found = by_dataset(full, measure)
        mean = found.mean()
        far = np.mean([distance(found, measure, name, name) for name in METHODS])
        rows.append((text, *(f"{mean[name]:.4f}" for name in METHODS), f"{far:.4f}"))
    given = printed("CalBin").loc[AVERAGE]
    rows.append(("published", *(f"{given[name]:.4f}" for name in METHODS), ""))
    return table(("ties", *METHODS, "distance by dataset"), rows)


# --- similarity binning against the others --------------------------------------------------------


def rivals(setting: str) -> list[str]:
    return [m for m in METHODS if m.endswith(setting) and not m.startswith("SBA")]


def published_wins(measure: str, method: str, rival: str) -> int:
    """On how many datasets the published figure of a method is the smaller one."""
    given = printed(measure).drop(index=AVERAGE)
    return int((given[method] < given[rival]).sum())


def duels(frame: pd.DataFrame) -> str:
    """SBA against each other method: wins and mean differences, here and as published, and p."""
    full = complete(frame)
    rows = []
    for measure in ("MSE", "CalBin", BY_LABEL):
        found, given = by_dataset(full, measure), printed(measure)
        for setting in "TV":
            ours = f"SBA {setting}"
            names = rivals(setting)
            tests = [cal.compare.wilcoxon(found[ours], found[name]).p_value for name in names]
            for name, p in zip(names, tests, strict=True):
                gap = found[ours] - found[name]
                known = given.loc[AVERAGE, ours] - given.loc[AVERAGE, name]
                wins = f"{(gap < 0).sum()} of {len(gap)}", published_wins(measure, ours, name)
                rows.append(
                    (
                        measure,
                        ours,
                        name,
                        *wins,
                        f"{gap.mean():+.4f}",
                        f"{known:+.4f}",
                        f"p {p_text(p)}",
                    )
                )
    head = ("measure", "method", "against", "wins", "published", "mean difference", "published")
    return table((*head, "Wilcoxon"), rows)


# --- by model -------------------------------------------------------------------------------------


def models_page(frame: pd.DataFrame) -> str:
    """Mean MSE, CalBin and AUC over the datasets for each kind of model."""
    full = complete(frame)
    found = {m: by_model(full, m) for m in ("MSE", "CalBin", "AUC")}
    models = list(found["MSE"].index)
    rows = []
    for method in (*METHODS[:6], "model V", *METHODS[6:]):
        texts = (
            f"{found['MSE'].loc[m, method]:.4f} / {found['CalBin'].loc[m, method]:.4f} / "
            f"{found['AUC'].loc[m, method]:.3f}"
            for m in models
        )
        rows.append((method, *texts))
    return table(("method", *models), rows)


def tests_by_model(frame: pd.DataFrame) -> str:
    """Ranks over datasets, Friedman's F and Holm's test against SBA, for each kind of model."""
    full = complete(frame)
    rows = []
    for measure in ("MSE", "CalBin"):
        for setting in "TV":
            for model in [None, *full["model"].unique()]:
                part = full if model is None else full[full["model"] == model]
                rows.append(
                    (measure, setting, model or "all four", *_ranked(part, measure, setting))
                )
    names = ["SBA", "model", "binning", "PAV", "Platt"]
    return table(("measure", "setting", "model", *names, "F", "better than", "worse than"), rows)


def _ranked(frame: pd.DataFrame, measure: str, setting: str) -> list[str]:
    """Mean ranks, Friedman's F with its p, and whom SBA differs from after Holm's correction."""
    names = [f"{m} {setting}" for m in ("SBA", "model", "binning", "PAV", "Platt")]
    found = by_dataset(frame, measure)[names]
    if len(found) < 2:
        return [""] * (len(names) + 3)
    friedman = cal.compare.friedman(found, larger_is_better=False)
    holm = cal.compare.holm(found, control=names[0], larger_is_better=False)
    ranks = cal.compare.average_ranks(found, larger_is_better=False)
    differ = friedman.f_p_value <= holm.level
    said = [
        ", ".join(name.removesuffix(f" {setting}") for name in who if differ) or "–"
        for who in (holm.superior, holm.inferior)
    ]
    value = friedman.f_statistic
    shown = "∞" if math.isinf(value) else f"{value:.1f}"
    return [*(f"{r:.2f}" for r in ranks.mean), f"{shown}, p {p_text(friedman.f_p_value)}", *said]


TIES = """CalBin looks at windows of a tenth of the test rows in the order of the predictions. The
paper does not say in which order rows of the same prediction stand. Three ways, the mean over
datasets of each:"""
AFTER_TIES = """The published figures are approached only where tied rows stand in the order of
their labels (the mean of both such orders, one for each class). That fills windows with rows of one
class, and makes methods that give few distinct values look uncalibrated, with few test rows most of
all. Ties together is what `cal.metrics.calbin` does: no order of rows can matter."""
DUELS = """Wins are datasets with the smaller figure; Wilcoxon's signed ranks over datasets,
two-sided, not corrected for their number."""
MODELS = """Each of the four kinds of model by itself: MSE / CalBin (ties together) / AUC, means
over the datasets. The paper's own figures by model, and its tests, were in a supplement that is not
at hand."""
TESTS = """Mean ranks over datasets (1 is best), Friedman's F (Iman and Davenport) and the methods
that SBA is better or worse than by Holm's test at 5 %, where F rejects at 5 %. "model": not
calibrated."""


def page(frame: pd.DataFrame) -> str:
    """Tables 2 and 3, what ties do, other readings, and comparisons."""
    parts = {
        "Table 3: MSE, published / ours": by_dataset_page(frame, "MSE"),
        "Table 2: CalBin with ties by label, published / ours": by_dataset_page(frame, BY_LABEL),
        "Table 2: CalBin with ties together, published / ours": by_dataset_page(frame, "CalBin"),
        "What ties do to CalBin": f"{TIES}\n\n{ties(frame)}\n\n{AFTER_TIES}",
        "Similarity binning against the others": f"{DUELS}\n\n{duels(frame)}",
        "By base classifier": f"{MODELS}\n\n{models_page(frame)}",
        "By base classifier, tests": f"{TESTS}\n\n{tests_by_model(frame)}",
    }
    text = "\n\n".join(f"### {title}\n\n{text}" for title, text in parts.items())
    return f"{text}\n\n{positives(DATASETS)}"


def page_sizes(frame: pd.DataFrame) -> str:
    """Table 1: rows and attributes, published and here."""
    found = published("bella2009", "1").pivot(index="dataset", columns="measure", values="value")
    rows = []
    for line in frame.to_dict("records"):
        name = line["dataset"]
        pairs = [(int(found.loc[name, m]), int(line[m])) for m in ("size", "nominal", "numeric")]
        same = "yes" if all(a == b for a, b in pairs) else "no"
        rows.append((DATASETS.index(name) + 1, name, *(f"{a} / {b}" for a, b in pairs), same))
    said = table(("#", "dataset", "size", "nominal", "numeric", "the same"), rows)
    return f"{said}\n\n{positives(line['dataset'] for line in frame.to_dict('records'))}"
