"""From raw rows to figures: means over models, and tests over datasets."""

from __future__ import annotations

import pandas as pd

import calibrant as cal

__all__ = ["by_dataset", "by_model", "complete", "differs", "p_text", "runs", "whole"]


def complete(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with the columns of 10-NN: those of the model of that name on the same rows."""
    names = [name for name in frame if name.startswith("model T ")]
    nearest = frame[frame["model"] == "10-NN"].set_index(["dataset", "seed"])[names]
    nearest.columns = [name.replace("model T", "10-NN T", 1) for name in names]
    return frame.drop(columns=list(nearest), errors="ignore").join(nearest, on=["dataset", "seed"])


def whole(frame: pd.DataFrame) -> pd.DataFrame:
    """The repetitions of a dataset that all of its models have been through."""
    models = frame.groupby("dataset")["model"].transform("nunique")
    there = frame.groupby(["dataset", "seed"])["model"].transform("nunique")
    return frame[there == models]


def columns_of(frame: pd.DataFrame, measure: str) -> dict[str, str]:
    """Columns "method measure", and the method of each."""
    end = f" {measure}"
    return {name: name.removesuffix(end) for name in frame if name.endswith(end)}


def runs(frame: pd.DataFrame, measure: str) -> pd.DataFrame:
    """A row per dataset and repetition, means over models; a column per method."""
    names = columns_of(frame, measure)
    mean = whole(frame).groupby(["dataset", "seed"], sort=False)[list(names)].mean()
    return mean.rename(columns=names)


def by_dataset(frame: pd.DataFrame, measure: str) -> pd.DataFrame:
    """A row per dataset, means over models and repetitions; a column per method."""
    found: pd.DataFrame = runs(frame, measure).groupby("dataset", sort=False).mean()
    return found


def by_model(frame: pd.DataFrame, measure: str) -> pd.DataFrame:
    """A row per kind of model, means over datasets; a column per method."""
    parts = {model: by_dataset(part, measure) for model, part in frame.groupby("model", sort=False)}
    return pd.DataFrame({model: part.mean() for model, part in parts.items()}).T


def p_text(p: float) -> str:
    return "< .0001" if p < 0.0001 else f"= {p:.2g}"


def differs(ours: pd.Series, other: pd.Series) -> str:
    """On how many datasets the figure is smaller than another, and Wilcoxon's p."""
    found = cal.compare.wilcoxon(ours.to_numpy(), other.to_numpy())
    return f"{(ours < other).sum()} of {len(ours)}, p {p_text(found.p_value)}"
