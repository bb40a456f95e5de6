# %% [markdown]
# # Eighty rows: how sure can a probability be?
#
# After this example you can say how far a probability can be trusted when there were few rows to
# learn it from.
#
# A hospital has 80 labelled cases for calibration. A Venn–Abers calibrator gives two probabilities
# for each case, a lower and an upper one. If they are far apart, there are too few cases like this
# one.

# %%
import matplotlib.figure
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

import calibrant as cal

X, y = load_breast_cancer(return_X_y=True)
y = y == 0  # malignant
X = X[:, :5]  # the first five measures of the image
X_train, X, y_train, y = train_test_split(X, y, train_size=200, stratify=y, random_state=0)
X_fit, X_new, y_fit, y_new = train_test_split(X, y, train_size=80, stratify=y, random_state=0)

model = GaussianNB().fit(X_train, y_train)
scores, scores_new = (np.diff(model.predict_log_proba(rows))[:, 0] for rows in (X_fit, X_new))

# %% [markdown]
# The scores are the model's log-odds, from below −5 to above 20.
#
# ## Lower and upper
#
# The new case joins the 80, once as benign and once as malignant, and isotonic regression is fitted
# both times. One of the two answers belongs to the true label, and that one is calibrated, whatever
# the distribution of the data. It only takes cases that are drawn alike.

# %%
venn = cal.VennAbers().fit(scores, y_fit)
asked = [-6, -3, 0, 3, 10]
low, high = venn.map_.bounds(asked)
for row in zip(asked, venn.calibrate(asked), low, high, strict=True):
    print("log-odds {:3}: {:.3f}, between {:.3f} and {:.3f}".format(*row))

# %% [markdown]
# Between the extremes the bounds are far apart: few of the 80 cases lie there.
#
# ## A smooth curve beside it
#
# `BLS` gives a band, too. Its band comes from a model of smooth curves and is a statement about
# that model. The Venn–Abers bounds need no model.

# %%
smooth = cal.BLS(levels=(0.9,)).fit(scores, y_fit)
for name, method in {"Venn–Abers": venn, "BLS": smooth}.items():
    loss = cal.metrics.log_loss(y_new, method.calibrate(scores_new))
    low, high = method.map_.bounds(scores_new)
    print(f"{name:11} log loss {loss:.3f}   mean width {(high - low).mean():.3f}")
raw = 1 / (1 + np.exp(-scores_new))
print(f"{'the model':11} log loss {cal.metrics.log_loss(y_new, raw):.3f}")

# %%
# picture: two panels with the probability by the model's log-odds; Venn-Abers is a line of steps in
# a band that is wide in the middle, BLS a smooth line in a smooth band
figure = matplotlib.figure.Figure(figsize=(5.4, 2.6), dpi=150, layout="constrained")
left, right = figure.subplots(1, 2, sharey=True)
at = np.linspace(-10, 25, 1000)
for axes, name, method in ((left, "Venn–Abers", venn), (right, "BLS, 90 %", smooth)):
    low, high = method.map_.bounds(at)
    axes.fill_between(at, low, high, color="#009E73", alpha=0.3, lw=0)
    axes.plot(at, method.calibrate(at), color="#009E73")
    axes.plot(scores, y_fit, "|", color="#222222", ms=7)
    axes.set_title(name, fontsize=9)
    axes.set_xlabel("log-odds (marks: the 80 cases)", fontsize=8)
    axes.set_xlim(-10, 25)
    axes.tick_params(labelsize=8)
left.set_ylabel("probability of malignant", fontsize=8)
figure.savefig("few_rows.png")

# %% [markdown]
# ## Do the bounds keep their promise?
#
# The share of malignant cases should lie between the mean of the lower and the mean of the upper
# probabilities. Draw the 80 cases again and again to see how often it does.

# %%
rng = np.random.default_rng(0)
all_scores, all_y = np.concatenate([scores, scores_new]), np.concatenate([y_fit, y_new])
inside = 0
for _ in range(200):
    order = rng.permutation(len(all_y))
    few, rest = order[:80], order[80:]
    low, high = cal.VennAbers().fit(all_scores[few], all_y[few]).map_.bounds(all_scores[rest])
    inside += low.mean() <= all_y[rest].mean() <= high.mean()
print(f"between the mean bounds in {inside} of 200 draws")

# %% [markdown]
# Chance moves the share of the other cases, too, so that it cannot be all 200. Read on: [few
# rows](../howto/few_rows.md), [how Venn–Abers works](../understand/methods/venn_abers.md).
