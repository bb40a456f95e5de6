"""Bella, Ferri, Hernández-Orallo and Ramírez-Quintana 2009: similarity-binning averaging."""

from __future__ import annotations

from experiments.papers.bella2009 import (
    classes,
    future,
    noise,
    pictures,
    readings,
    repetition,
    tables,
)
from experiments.papers.bella2009.claims import claims
from experiments.papers.cells import Paper, Table

__all__ = ["PAPER"]

NOTES = """
A. Bella, C. Ferri, J. Hernández-Orallo, M. J. Ramírez-Quintana, "Similarity-binning averaging: a
generalisation of binning calibration", 2009, doi:10.1007/978-3-642-04394-9_42.

**Settings.** T: trained and calibrated on the same 75 % of the rows. V: trained on 56 %, calibrated
on another 19 %. Tested on the other 25 %, the same rows in both settings and for all methods and
models. Classes have equal shares in all parts (the paper: "randomly"), so that both are there with
57 rows, too. 100 repetitions for each of four models in the full run, as in the paper.

**Models**, in place of WEKA's with its defaults: *naive Bayes* with normal densities and
Laplace-smoothed words, missing values left out; *tree*: C4.5 as J48 has it (gain ratio, a branch
for each word, cuts of numbers corrected for their choice, at least two rows in two branches, pruned
by expected errors at a confidence of 25 %, leaves not smoothed), but without subtree raising;
*10-NN*: IBk with ten neighbours, all that are tied with the tenth among them; *logistic regression*
with a ridge of 1e-8, words one-hot. For the tree and the last, gaps are filled by the mean or the
most frequent word, as WEKA's Logistic does. A first run had an entropy tree with binary splits, and
was a little farther from the published figures.

**Methods.** Binning: ten bins of equal mass, ties together. PAV: steps. Platt: on the probabilities
as they are. SBA: ten neighbours in the attributes and the probabilities of both classes, without
smoothing. The paper's reference 10-NN is the model of that name, so each of its figures is there
once for four models. MSE is divided by rows and classes.

**Data.** Tic-tac-toe is without a corner square: the paper counts eight attributes. Spect is
SPECTF's training part of 80 rows.

**Published / ours ± standard deviation** over repetitions; a run is the mean over the four models.
Published figures are means of 100 repetitions, as ours are. † marks those outside the
99 % interval of the difference of both means; the paper's runs are taken to vary as ours do.

**Out of scope**: the supplement with the paper's experiments by classification method, its tests
and its multiclass experiments is not at hand. What we measured instead is below, with nothing
published beside it. The paper's one figure is a drawing of the method.
"""

PAPER = Paper(
    name="bella2009",
    title="Similarity-binning averaging (Bella et al. 2009)",
    tables=(
        Table(
            "1",
            "Table 1: the datasets, published / here",
            repetition.sizes_cells,
            repetition.run_sizes,
            tables.page_sizes,
        ),
        Table(
            "2-3",
            "Tables 2 and 3: CalBin and MSE",
            repetition.cells,
            repetition.run,
            tables.page,
            figures=pictures.draw,
        ),
        Table(
            "readings",
            "Other readings of the text",
            readings.cells,
            readings.run,
            readings.page,
        ),
        Table(
            "multiclass",
            "Several classes, against Zadrozny and Elkan's combiners",
            classes.cells,
            classes.run,
            classes.page,
        ),
        Table("noise", "Noise on an attribute", noise.cells, noise.run, noise.page),
        Table("future", "The paper's future work", future.cells, future.run, future.page),
    ),
    claims=claims,
    notes=NOTES,
)
