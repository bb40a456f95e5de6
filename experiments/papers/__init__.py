"""The papers' tables, computed again and set beside the published figures.

One package per paper, each with a `PAPER`: its tables as cells, and its claims. Every published
figure is in ``published.csv``, with the line of the text it was read from.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.papers.cells import Paper

__all__ = ["NAMES", "paper"]

#: in the order in which the papers appeared
NAMES = ("zadrozny2002", "niculescu2005", "bella2009", "naeini2015", "naeini2018")


def paper(name: str) -> Paper:
    """A paper by its name."""
    found: Paper = import_module(f"experiments.papers.{name}").PAPER
    return found
