"""The figures that the papers print. They are typed nowhere else."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pandas as pd

__all__ = ["NOT_LEGIBLE", "everything", "figure", "published"]

FILE = Path(__file__).parent / "published.csv"
#: what a table says where the copy of the paper at hand has lost a figure
NOT_LEGIBLE = "not legible in our copy"
WORDS = ["dataset", "model", "method", "measure"]


@lru_cache
def everything() -> pd.DataFrame:
    """All that is printed: where, what of, the value as text (NaN: not legible), and an sd."""
    words = dict.fromkeys(["paper", "table", *WORDS, "value"], str)
    return pd.read_csv(FILE, dtype=words, keep_default_na=False, na_values={"value": "", "sd": ""})


def published(paper: str, table: str) -> pd.DataFrame:
    """The figures of one table, as numbers unless it is one of words."""
    found = everything()
    part = found[(found["paper"] == paper) & (found["table"] == table)]
    if part.empty:
        raise KeyError(f"published.csv has no table {table!r} of {paper}")
    try:
        return part.assign(value=pd.to_numeric(part["value"])).reset_index(drop=True)
    except ValueError:  # orders of growth are words
        return part.reset_index(drop=True)


def figure(paper: str, table: str, **words: str) -> float:
    """One figure, by those of dataset, model, method and measure that tell it from the others."""
    part = published(paper, table)
    for name, word in words.items():
        part = part[part[name] == word]
    if len(part) != 1:
        raise KeyError(f"{len(part)} figures of {paper}, table {table}, are {words}; must be one")
    return float(part["value"].iloc[0])
