# %% [markdown]
# # Boosted trees, and whom to call
#
# After this example you can turn costs into a threshold, and see what wrong probabilities cost in
# money.
#
# A shop wants to keep its customers. A needless call costs 5, and a customer who leaves without a
# call costs 60. Calling pays where the probability to leave is at least 5 / (5 + 60). That rule is
# right only if the probabilities are.

# %%
import numpy as np
from lightgbm import LGBMClassifier
from sklearn.datasets import make_classification

import calibrant as cal

X, y = make_classification(
    24_000, n_features=12, n_informative=6, weights=[0.9], class_sep=0.7, random_state=3
)
train, fit, new = slice(0, 3_000), slice(3_000, 12_000), slice(12_000, None)

booster = LGBMClassifier(
    n_estimators=500, num_leaves=31, learning_rate=0.1, random_state=0, n_jobs=1, verbose=-1
)
booster.fit(X[train], y[train])
scores = booster.predict_proba(X)[:, 1]

# %% [markdown]
# 500 rounds without early stopping rank customers well, but the scores crowd at 0 and 1. The
# calibrator learns from customers that the trees have not seen.

# %%
calibrator = cal.AutoCalibrator().fit(scores[fit], y[fit])
p = calibrator.calibrate(scores[new])
print(calibrator.explain())

# %% [markdown]
# ## From costs to a score
#
# `best_threshold` reads the map from right to left: it names the raw score at which the probability
# passes the limit.

# %%
limit = cal.best_threshold(calibrator, cost_fp=5, cost_fn=60, scores=scores[new])
print(f"call where the probability is at least {limit.probability:.3f}")
print(f"that is a raw score of {limit.score:.5f} or more")


def cost(act):
    """What the calls and the lost customers cost, for each customer."""
    return (5 * (act & (y[new] == 0)) + 60 * (~act & (y[new] == 1))).mean()


everyone = np.ones(len(p), dtype=bool)
print(f"expected cost with calibrated probabilities: {limit.expected_cost:.2f}")
print(f"what it came to: {cost(p >= limit.probability):.2f}")
print(f"the same rule with the raw scores: {cost(scores[new] >= limit.probability):.2f}")
print(f"calling everyone: {cost(everyone):.2f}, calling no one: {cost(~everyone):.2f}")

# %% [markdown]
# The raw scores are too low for many who leave, so they call too few people. The expected cost was
# said before any outcome was known, and it was about right.
#
# ## Other costs
#
# Whoever has other costs has another threshold. The decision curve shows the value of acting on a
# model at each of them, beside calling everyone and calling no one.

# %%
# picture: decision curves; the calibrated probabilities are worth more than the raw scores at low
# thresholds, and both meet at one half
curve = cal.diagrams.decision_curve(
    y[new], {"raw scores": scores[new], "calibrated": p}, thresholds=np.arange(2, 61) / 100
)
cal.diagrams.decision_diagram(curve).savefig("cost_threshold.png")

# %% [markdown]
# Read on: [a decision in SQL](../howto/export.md#a-decision-instead-of-a-probability), [which score
# is 5 %](../reference/maps.md).
