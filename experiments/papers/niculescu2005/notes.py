"""How the tables were made, and what is out of scope."""

from __future__ import annotations

from experiments.papers.niculescu2005.figures import CLIP
from experiments.papers.niculescu2005.others import grids_table
from experiments.papers.niculescu2005.problems import TEST, TRAIN, VALIDATION
from experiments.papers.niculescu2005.styles import LEARNERS, styles_table

__all__ = ["NOTES"]


def _steps() -> str:
    return "; ".join(
        f"{name} to {kind.most:,} ({kind.quick_most:,} in a quick run)"
        for name, kind in LEARNERS.items()
    )


NOTES = f"""
**Problems.** COV_TYPE (positive: the largest class, as the text says), ADULT (positive: >50K),
LETTER.P1 (O) and LETTER.P2 (A–M). MEDIS, MG and SLAC are private, and HS, made of a public image
(Indian Pines), is not among the data at hand; so every mean is over four problems, and published
means are taken over the rows of these four. COV_TYPE is also shown
with class 1 as the positives, whose share is the one that the authors' companion papers print: the
text and the figures of the paper do not agree on this (see Table 2).

**Rows.** {TRAIN:,} to train on and {VALIDATION:,} to select on, as in the authors' companion
papers (this one is silent), up to {TEST:,} others to test on; a random split for each seed. Numbers
are standardised (which trees do not see), words are one-hot, rare ones together.

**Calibration.** Platt's method and isotonic regression are fitted to raw scores (eq. 4) of three
folds of the training rows, pooled, and applied to the booster of all of them; Figure 5 varies the
calibration rows and Figure 6 takes the rows to select on instead, both as the paper says. Platt's
method reads the score itself (`scale="raw"`), isotonic steps are closed on the right.

**Measures.** Cross-entropy is in bits (published figures above ln 2 after calibration hardly have
another reading), with predictions kept {CLIP:g} from 0 and 1; the paper does so too, but does not
say how far. Squared error is that of the positive class.

**Selection.** The paper reports "the best" models. Here the best style and number of steps for each
problem, method and measure is the one with the least loss on the rows to select on, as in the
paper's section 5; figures are of the test rows. Steps: powers of two,
{_steps()}. In Figure 5 the best calibrated model is
the one that is best after Platt's method, for isotonic regression too. A quick run also stops
sooner in Figures 2 to 6; the pages say what they rest on.

**Styles.** IND is not at hand. The paper does not name the five splitting criteria; scikit-learn
has two. What stands in for them, and for the ten tree styles:

{styles_table()}

Pruning is by cost complexity with a fixed price, not by IND's own rules; "Bayesian" smoothing is an
m-estimate (m = 2) of each leaf, not an average over prunings. Hard votes do not see the smoothing
of leaves, so the smoothed styles vote by 2p − 1. `exact_trees.py` grows scikit-learn's trees, node
for node the same, in about a third of the time.

**Other learners (Figure 6).** 100 bagged entropy trees, forests of 256 trees, networks of one
hidden layer, RBF support vectors on standardised columns (uncalibrated: (x − min)/(max − min) over
the rows to select on), naive Bayes with normal densities or ten bins of equal mass, single trees
smoothed as above. Many fewer settings than the authors tried:

{grids_table()}

**Verdicts.** A claimed change holds if ours has its sign and between three quarters and four thirds
of its size (of the size in the published rows of the four problems, where there are any: squared
errors are printed for no problem, only their change in the mean of eight); the other limits stand
beside the claims. The plotted figures are not legible in our copy, so only what the text says of
them is judged.
"""
