"""What the page of the paper says before its tables."""

from __future__ import annotations

from experiments.papers.beside import LEVEL, MOST
from experiments.papers.naeini2015.adult import ENCODINGS
from experiments.papers.naeini2015.claims import AS_WELL

NOTES = f"""
Each part of Table 1 prints one draw (or, for SPECT, one split): a figure for each method and
measure. Here are mean ± standard deviation over many draws. "Within the spread": the published
figure lies in the {LEVEL:.0%} prediction interval of one more run of ours (Student's). "Order
kept": of the pairs of methods that the paper's line tells apart, how many are in the same order in
our means. "†": outside the spread.

**Methods.** Histogram binning with ten bins of equal counts (the paper does not say how many);
Platt's sigmoid of the score as it is (`scale="raw"`); isotonic regression with steps. The paper
does not say which λ it took: SBB has the λ of the largest evidence, one binning; ABB averages
over λ. Values of bins are (n₁+1)/(n+2).

**ACP** takes the frequency among calibration scores in the interval of a score. The paper says
that it "adjusts" the 95 % interval of the logistic regression, not how. Here are 95 % intervals
by the delta method, on the scale of the probability (the column ACP) and of the logit, and 10 %
ones.

**MCE and ECE** are in the authors' reading where they stand beside published figures: ten groups
of equal counts, tied predictions ordered by label, and √(ECE/10) printed as ECE. That they print
a root is inferred: no other reading gives the row of the SVM on Adult, and 10·ECE² ≤ MCE holds in
every line. Our own readings are below each table: MCE and ECE with ties together ("plain": no
root), and ECE over ten bins of equal width.

**Simulated data.** 600 rows each to train, to calibrate and to test; logistic regression without
a penalty worth the name (C = 10⁶). The paper gives no formula, and its Figure 2 is not in our
copy. Circular: a disc of radius 2 in a ring up to 4, uniform in radius, as in the authors' paper
of 2018. XOR: Gaussian blobs of sd ½ around (±1, ±1), our choice. For XOR the direction of the
model is a matter of chance, and only near a diagonal does its score tell the classes apart; the
published figures are of such a draw.

**Adult.** Income above $50,000, the 45,222 rows that miss nothing; 2,000, 600 and 600 of them at
random, new in each draw. Naive Bayes has normal densities for numbers and Laplace-smoothed
frequencies for words (normal or Bernoulli densities of one-hot words were looked at and are
farther from the published figures); the linear SVM has C = 1 and σ of its margin (footnote 3);
logistic regression has C = 10⁶. The paper does not say what the models saw of the fourteen
attributes. All fourteen (words one-hot for the SVM and the logistic regression) are what the text
suggests. The other readings were found by trying the {len(ENCODINGS)} encodings of the table of
encodings for such as fit the published figures of the models: the eight nominal attributes alone,
which the logistic regression sees as codes 0, 1, 2, … in alphabetical order, and, for the
logistic regression, age and hours alone. They are judged on the draws that they were found on,
and two unlike ones fit the logistic regression equally well: any model of about that strength
would, and which attributes the paper's models saw cannot be told. What the paper says in words is
judged with all attributes; counts with the nominal ones are in the note.

**SPECT.** Normal images, class 0, are positive: they are the class with 15 test rows. The 80
training rows also serve to calibrate, as in the paper. Naive Bayes with Laplace's smoothing; the
SVM with the kernel d(1 + d), d = u·v, on z-scored attributes and C = 1, as in our reading of the
authors' paper of 2018; logistic regression without penalty, though the rows are all but
separable, which fits better than any penalty. Other settings are in a table; more were looked at
before (other smoothing, scales of the kernel and shifts of the margin, λ from .01 to 1,000). Only
a fitted scale and shift of the margin come near the row of the SVM, and nothing near those of SBB
and ABB on it. There is nothing random left: "ours" is the figure on the paper's own test rows,
the spread is over resamples of these (models and maps as they are). Since both figures are of the
same rows, that spread is generous; so it is also counted how many agree to .02.

**CAP** (Table 1 i, j, k) is a private dataset of patients: out of reach. One of its published
figures, an AUC in (j), is not legible in our copy.

**Claims.** "As well": not worse by more than {AS_WELL:g}. "As well or better", "generally",
"often": in at least half of the comparisons for each pair of methods. A table is repeated if
{MOST:.0%} of its figures lie within the spread.

**Figures.** Figure 1 is a hypothetical curve. Figure 2, the simulated data, is not in our copy;
the pictures show our draws with the maps that the methods find.
"""
