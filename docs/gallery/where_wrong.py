# %% [markdown]
# # Where is it wrong?
#
# After this example you can find the groups of rows for which probabilities do not hold, and mend
# them.
#
# A model of late payments was trained without two columns, the sales channel and the age of the
# account. On average its probabilities are right. For some customers they are far off.

# %%
import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

import calibrant as cal

rng = np.random.default_rng(2)
n = 24_000
X = pd.DataFrame({f"x{i}": rng.normal(size=n) for i in range(6)})
columns = pd.DataFrame(
    {
        "channel": rng.choice(["shop", "web", "phone"], n, p=[0.5, 0.4, 0.1]),
        "months": rng.integers(1, 120, n),
        "region": rng.choice(["north", "east", "south", "west"], n),
    }
)
z = X @ [1.0, 0.8, -0.6, 0.5, 0.0, 0.0] - 1
z += np.where((columns["channel"] == "web") & (columns["months"] < 12), 1.8, 0)
z -= np.where(columns["channel"] == "phone", 0.9, 0)
y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)

train, fit, new = slice(0, 8_000), slice(8_000, 16_000), slice(16_000, None)
model = LGBMClassifier(n_estimators=60, num_leaves=7, n_jobs=1, random_state=0, verbose=-1)
scores = model.fit(X[train], y[train]).predict_proba(X)[:, 1]

# %% [markdown]
# ## Right on average, wrong for some
#
# `multicalibration` looks at all categories, ranges and crossings of two columns at once, and
# allows for how many it looks at.

# %%
curve = cal.AutoCalibrator().fit(scores[fit], y[fit])
p = curve.calibrate(scores[new])
print(f"mean probability {p.mean():.3f}, {y[new].mean():.3f} came")
found = cal.metrics.multicalibration(y[new], p, features=columns[new])
print(found)

# %%
# picture: observed minus predicted in the two worst groups, with intervals that do not hold 0
cal.diagrams.group_diagram(found, title="After a curve of the score").savefig("groups.png")

# %% [markdown]
# ## Mend it
#
# `FeatureCalibrator` corrects the log-odds by small trees that see the columns. It takes them only
# if they help on rows held out.

# %%
by_columns = cal.FeatureCalibrator().fit(scores[fit], y[fit], features=columns[fit])
q = by_columns.calibrate(scores[new], features=columns[new])
print(by_columns.explain())

# %%
print(cal.metrics.multicalibration(y[new], q, features=columns[new]))
for name, values in {"raw": scores[new], "a curve": p, "columns": q}.items():
    loss, area = cal.metrics.log_loss(y[new], values), cal.metrics.auc(y[new], values)
    print(f"{name:8} log loss {loss:.4f}   AUC {area:.3f}")

# %%
# picture: reliability in each channel; the curve of the score lies off the diagonal for phone and
# web, the calibrator by columns follows it in all three
figure = cal.reliability_diagram(
    y[new],
    {"a curve": p, "columns": q},
    segments=columns["channel"][new],
    bins=6,
    band=None,
)
figure.savefig("channels.png")

# %% [markdown]
# The AUC rises, too: the columns tell who pays late, and a curve of the score cannot know that.
# Read on: [columns of the row](../howto/feature_calibration.md), [the test behind the
# table](../reference/metrics.md#where-is-it-wrong).
