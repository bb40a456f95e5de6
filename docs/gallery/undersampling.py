# %% [markdown]
# # One fraud in a hundred, after undersampling
#
# After this example you can undo what undersampling did to probabilities.
#
# There are 100 honest payments for each fraud. To save time, only one honest payment in twenty is
# kept, for the model and for its calibrator. Both then believe that fraud is far more frequent than
# it is.

# %%
import numpy as np
from sklearn.datasets import make_classification
from xgboost import XGBClassifier

import calibrant as cal

X, y = make_classification(
    200_000, n_features=10, n_informative=6, weights=[0.99], flip_y=0.0, class_sep=0.6,
    n_clusters_per_class=3, random_state=1,
)  # fmt: skip
rng = np.random.default_rng(0)
kept = (y == 1) | (rng.random(len(y)) < 0.05)
train = kept & (np.arange(len(y)) < 60_000)
fit = kept & (np.arange(len(y)) >= 60_000) & (np.arange(len(y)) < 100_000)
new = np.arange(len(y)) >= 100_000  # all payments, as they will come
for name, rows in {"kept for the calibrator": fit, "as they will come": new}.items():
    print(f"{name}: {rows.sum():,} payments, {y[rows].mean():.4f} of them fraud")

# %%
model = XGBClassifier(n_estimators=150, max_depth=4, n_jobs=1, random_state=0)
model.fit(X[train], y[train])
scores = model.predict_proba(X)[:, 1].astype(float)

calibrator = cal.AutoCalibrator().fit(scores[fit], y[fit])
adjusted = cal.adjust_prior(calibrator, kept=0.05)

# %% [markdown]
# `adjust_prior` multiplies all odds by 0.05, the share that was kept. The result is a calibrator
# like any other: it can be saved and exported, and its file says what was done.

# %%
stages = {
    "raw scores": scores[new],
    "calibrated on kept rows": calibrator.calibrate(scores[new]),
    "adjusted": adjusted.calibrate(scores[new]),
}
for name, p in stages.items():
    loss = cal.metrics.log_loss(y[new], p)
    blocked = (p >= 0.5).sum()
    print(f"{name:24} mean {p.mean():.4f}   log loss {loss:.4f}   blocked {blocked:,}")
print(f"{'what came':24} mean {y[new].mean():.4f}")

# %% [markdown]
# The order of payments is the same in all three, so AUC sees no difference. But whoever blocks from
# 50 % on would block thousands of payments without the adjustment, most of them honest: there are
# fewer frauds than that. On log-odds axes the correction is a shift: the whole curve moves to the
# diagonal.

# %%
# picture: reliability on log-odds axes; the curve of the kept rows runs below the diagonal and
# parallel to it, the adjusted one lies on it
figure = cal.reliability_diagram(
    y[new],
    stages["adjusted"],
    raw=stages["calibrated on kept rows"],
    axes="logit",
    curve="isotonic",
    names=("adjusted", "calibrated on kept rows"),
)
figure.savefig("undersampling.png")

# %% [markdown]
# You need none of this if the calibrator sees rows at the true rate: it then undoes the
# undersampling by itself. Read on: [other base rates](../howto/prior.md), [rare
# events](../howto/rare_events.md).
