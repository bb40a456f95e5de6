# %% [markdown]
# # Naive Bayes and a random forest, before and after
#
# After this example you can wrap a scikit-learn model so that its probabilities hold, and see
# whether they do.
#
# Naive Bayes counts the same evidence several times when columns repeat each other, so it is too
# sure. A random forest averages many trees, so it hardly ever says 0 or 1. Logistic regression is
# often fine as it is. All three get the same treatment here.

# %%
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import calibrant as cal

rng = np.random.default_rng(0)
causes = rng.normal(size=(12_000, 4))
X = np.repeat(causes, 4, axis=1) + rng.normal(0, 0.7, (12_000, 16))  # each is measured four times
y = rng.random(12_000) < 1 / (1 + np.exp(-causes @ [2.2, -1.6, 1.2, 0.8] + 0.5))
X, X_new, y, y_new = X[:4_000], X[4_000:], y[:4_000], y[4_000:]

# %% [markdown]
# ## Fit each model twice
#
# Once as it is, and once inside `CalibratedClassifier`. That learns the calibration curve from
# out-of-fold scores: no row is scored by a model that was trained on it.

# %%
models = {
    "naive Bayes": GaussianNB(),
    "random forest": RandomForestClassifier(100, max_depth=6, max_features=2, random_state=0),
    "logistic regression": LogisticRegression(),
}
before, after = {}, {}
for name, model in models.items():
    calibrated = cal.CalibratedClassifier(model, cv=3).fit(X, y)
    before[name] = model.fit(X, y).predict_proba(X_new)[:, 1]
    after[name] = calibrated.calibrate(X_new)
    print(f"{name:20} {calibrated.calibrator_.chosen_}")

# %% [markdown]
# The default calibrator may refuse. It kept the logistic regression's scores as they are
# (`uncalibrated`), because the rows held out gave no reason to change them.
#
# ## Measure on new rows
#
# Log loss is the honest summary: it falls if probabilities get better, in whatever way. The
# interval in the last column is that of the change.

# %%
for name in models:
    print(name)
    print(cal.evaluate(y_new, after[name], raw=before[name], measures=["log_loss", "ece", "auc"]))
    print()

# %% [markdown]
# ## Look at it
#
# On the diagonal, what was promised is what happened. Naive Bayes lies flat: it says almost 0 and
# almost 1 too often. The forest is steep: its low probabilities are too high, and its high ones too
# low. Afterwards both follow the diagonal.

# %%
# picture: four reliability diagrams; before, naive Bayes lies flatter than the diagonal and the
# forest steeper, after calibration both follow it
shown = {f"{name}, before": before[name] for name in ("naive Bayes", "random forest")}
shown |= {f"{name}, after": after[name] for name in ("naive Bayes", "random forest")}
panels = cal.diagrams.reliability_panels(y_new, shown)
cal.diagrams.panel_diagram(panels, across=2).savefig("before_and_after.png")

# %% [markdown]
# Read on: [which `cv`, when](../howto/classifier.md#which-cv-when), [which
# calibrator](../howto/choosing.md), [reading the diagram](../understand/diagrams.md).
