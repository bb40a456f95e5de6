# %% [markdown]
# # Six calibrators on fourteen datasets
#
# After this example you can compare methods over datasets, and tell a difference from luck.
#
# One dataset says which method was better there. To say which is better in general, the datasets
# are the sample: the more of them, and the less they have in common, the better.

# %%
import warnings

import numpy as np
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

import calibrant as cal


def sources():
    """A name, rows and two classes, from bundled and simulated data."""
    X, y = datasets.load_breast_cancer(return_X_y=True)
    yield "breast cancer", X, y
    X, y = datasets.load_digits(return_X_y=True)
    yield "digits: odd or even", X, y % 2
    X, y = datasets.load_diabetes(return_X_y=True)
    yield "diabetes: worse than most", X, y > np.median(y)
    yield "moons", *datasets.make_moons(1_500, noise=0.35, random_state=0)
    yield "circles", *datasets.make_circles(1_500, noise=0.25, factor=0.5, random_state=0)
    yield "hastie", *datasets.make_hastie_10_2(1_500, random_state=0)
    yield (
        "quantiles",
        *datasets.make_gaussian_quantiles(n_samples=1_500, n_classes=2, random_state=0),
    )
    for seed, informative in enumerate((2, 3, 4, 5, 6, 8, 10)):
        X, y = datasets.make_classification(
            1_500,
            n_features=12,
            n_informative=informative,
            weights=[0.5 + 0.05 * seed],
            flip_y=0.02 * seed,
            random_state=seed,
        )
        yield f"simulated {seed + 1}", X, y


# %% [markdown]
# ## The losses
#
# On each dataset, a model learns from 40 % of the rows and a calibrator from the next 20 %. The log
# loss on the last 40 % is averaged over two models, so that each dataset counts once. On the
# smaller datasets, isotonic regression and histograms warn that they want more rows; that is part
# of the comparison, and the warnings are switched off.

# %%
warnings.simplefilter("ignore", cal.errors.AdviceWarning)
methods = {
    "BLS": cal.BLS(),
    "Platt": cal.Platt(),
    "Beta": cal.Beta(),
    "Isotonic": cal.Isotonic(smoothing="laplace"),
    "Venn-Abers": cal.VennAbers(),
    "Histogram": cal.Histogram(smoothing="laplace"),
}
losses = {name: [] for name in methods}
for _, X, y in sources():
    order = np.random.default_rng(0).permutation(len(y))
    train, fit, new = np.split(order, [int(0.4 * len(y)), int(0.6 * len(y))])
    found = {name: [] for name in methods}
    for model in (GaussianNB(), RandomForestClassifier(100, max_features=2, random_state=0)):
        scores = model.fit(X[train], y[train]).predict_proba(X)[:, 1]
        for name, method in methods.items():
            p = method.fit(scores[fit], y[fit]).calibrate(scores[new])
            found[name].append(cal.metrics.log_loss(y[new], p))
    for name, values in found.items():
        losses[name].append(np.mean(values))
for name, values in losses.items():
    print(f"{name:11} mean log loss {np.mean(values):.4f}")

# %% [markdown]
# ## The test
#
# Means are ruled by the hard datasets, so the tests use ranks. Holm's procedure holds each method
# against one that was named beforehand.

# %%
print(cal.compare.compare(losses, larger_is_better=False, control="BLS"))

# %% [markdown]
# ## The picture
#
# The best stand on the left. A bar joins methods that could not be told apart, all pairs together.

# %%
# picture: mean ranks of six calibrators on a line, with bars that join those that do not differ
whole = cal.compare.compare(losses, larger_is_better=False)
cal.diagrams.critical_difference_diagram(whole).savefig("comparing.png")

# %% [markdown]
# Fourteen datasets, half of them from one generator, are few. [The arena](../evidence/arena.md)
# does this on many more, with the calibrators of other packages. Read on: [comparing
# methods](../howto/compare.md).
