"""Niculescu-Mizil and Caruana (2005): Obtaining calibrated probabilities from boosting."""

from __future__ import annotations

from experiments.papers.cells import Paper, Table
from experiments.papers.niculescu2005 import (
    figure1,
    figure2,
    figure5,
    figure6,
    table2,
    table2_page,
)
from experiments.papers.niculescu2005.claims import claims
from experiments.papers.niculescu2005.notes import NOTES

__all__ = ["PAPER"]

#: no key is run through first: both splits of a style together, since selection is among what both
#: have
IN_ORDER = ""

PAPER = Paper(
    name="niculescu2005",
    title="Niculescu-Mizil and Caruana (2005): Obtaining calibrated probabilities from boosting",
    tables=(
        Table(
            "2",
            "Table 2: boosted stumps and trees, raw and corrected",
            table2.cells,
            table2.run,
            table2_page.page,
            work="steps",
            repeats=IN_ORDER,
        ),
        Table(
            "figure1",
            "Figure 1: predictions over the steps of boosting",
            figure1.cells,
            figure1.run,
            figure1.page,
            work="steps",
            figures=figure1.draw,
        ),
        Table(
            "figure2",
            "Figures 2, 3 and 4: boosted trees before and after calibration",
            figure2.cells,
            figure2.run,
            figure2.page,
            work="steps",
            figures=figure2.draw,
        ),
        Table(
            "figure5",
            "Figure 5: learning curves of the two calibrations",
            figure5.cells,
            figure5.run,
            figure5.page,
            work="steps",
            figures=figure5.draw,
        ),
        Table(
            "figure6",
            "Figure 6: ten learning methods before and after calibration",
            figure6.cells,
            figure6.run,
            figure6.page,
            work="steps",
            repeats=IN_ORDER,
            figures=figure6.draw,
        ),
    ),
    claims=claims,
    notes=NOTES,
)
