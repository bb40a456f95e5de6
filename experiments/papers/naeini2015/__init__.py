"""Naeini, Cooper and Hauskrecht (2015): SBB and ABB."""

from __future__ import annotations

from experiments.papers.cells import Paper, Table
from experiments.papers.naeini2015 import adult, orders, pages, separate, simulated, sizes, spect
from experiments.papers.naeini2015.claims import claims
from experiments.papers.naeini2015.joint import JOINT_TABLE
from experiments.papers.naeini2015.methods import METHODS
from experiments.papers.naeini2015.notes import NOTES
from experiments.papers.naeini2015.pictures import draw_circular, draw_lr, draw_orders, draw_xor
from experiments.papers.several_classes import classes_table

__all__ = ["PAPER"]

_TABLES = (
    Table(
        "1a",
        "Table 1 (a): XOR, logistic regression",
        simulated.cells,
        simulated.run_xor,
        pages.page_xor,
        figures=draw_xor,
    ),
    Table(
        "1b",
        "Table 1 (b): circular, logistic regression",
        simulated.cells,
        simulated.run_circular,
        pages.page_circular,
        figures=draw_circular,
    ),
    Table(
        "1c",
        "Table 1 (c): Adult, naive Bayes",
        adult.cells_nb,
        adult.run_nb,
        pages.adult_page("1c", "NB"),
    ),
    Table(
        "1d",
        "Table 1 (d): Adult, linear SVM",
        adult.cells_svm,
        adult.run_svm,
        pages.adult_page("1d", "SVM"),
    ),
    Table(
        "1e",
        "Table 1 (e): Adult, logistic regression",
        adult.cells_lr,
        adult.run_lr,
        pages.adult_page("1e", "LR"),
        figures=draw_lr,
    ),
    Table(
        "encodings",
        "Table 1 (c) to (e): what did the models see of Adult?",
        adult.cells_encodings,
        adult.run_encodings,
        pages.page_encodings,
    ),
    Table(
        "1f", "Table 1 (f): SPECT, naive Bayes", spect.cells, spect.run_nb, pages.spect_page("1f")
    ),
    Table(
        "1g",
        "Table 1 (g): SPECT, SVM with a quadratic kernel",
        spect.cells,
        spect.run_svm,
        pages.spect_page("1g"),
    ),
    Table(
        "1h",
        "Table 1 (h): SPECT, logistic regression",
        spect.cells,
        spect.run_lr,
        pages.spect_page("1h"),
    ),
    Table(
        "variants",
        "Table 1 (f) to (h): other settings of the models",
        spect.cells_variants,
        spect.run_variants,
        pages.page_variants,
    ),
    Table(
        "separate",
        "Footnote 2: calibrated on the training rows, and on others",
        separate.cells,
        separate.run,
        separate.page,
    ),
    Table(
        "sizes",
        "Rows that are enough to calibrate, and to train",
        sizes.cells,
        sizes.run,
        sizes.page,
    ),
    Table(
        "2",
        "Table 2: how time grows",
        orders.cells,
        orders.run,
        pages.page_orders,
        work="n",
        times=("rows", "table", "query", "map"),
        figures=draw_orders,
    ),
    classes_table({name: METHODS[name] for name in ("SBB", "ABB")}),
    JOINT_TABLE,
)

PAPER = Paper(
    "naeini2015",
    "Naeini, Cooper and Hauskrecht (2015): binary classifier calibration using a Bayesian "
    "non-parametric approach",
    _TABLES,
    claims,
    NOTES,
)
