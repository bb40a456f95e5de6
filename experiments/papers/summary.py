"""What holds and what does not: how many claims of the five papers hold."""

from __future__ import annotations

from collections.abc import Sequence

from experiments import table
from experiments.data import PAPERS
from experiments.papers.render import Judged, share

__all__ = ["NAME", "summary"]

#: of the page in docs/evidence/papers
NAME = "what_holds"


def summary(papers: Sequence[Judged]) -> str:
    """Distinct claims by verdict, and the share of all cells, paper by paper."""
    rows = []
    for found in papers:
        verdicts = found.verdicts
        cells = share(*map(sum, zip(*found.cells.values(), strict=True)))
        rows.append((_link(found), *(verdicts.count(each) for each in (True, False, None)), cells))
    totals = (sum(int(row[i]) for row in rows) for i in (1, 2, 3))
    every = [pair for found in papers for pair in found.cells.values()]
    rows.append(("all", *totals, share(*map(sum, zip(*every, strict=True)))))
    return table(("paper", "hold", "do not hold", "cannot be judged", "cells"), rows)


def _link(found: Judged) -> str:
    return f"[{PAPERS[found.paper.name]}]({found.paper.name}.md)"
