# %% [markdown]
# # Four months in production: watch, find the change, mend
#
# After this example you can watch a model's probabilities every day, know what an alarm means, and
# repair the calibrator without training the model again.

# %%
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier

import calibrant as cal

X, y = make_classification(
    45_000, n_features=10, n_informative=5, weights=[0.8], flip_y=0.1, random_state=5
)
model = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(X[:5_000], y[:5_000])
scores = model.predict_proba(X)[:, 1]
calibrator = cal.AutoCalibrator().fit(scores[5_000:15_000], y[5_000:15_000])

# %% [markdown]
# ## 120 days
#
# Each day brings 250 rows. From day 81 on, a competitor is gone and some customers who would have
# left stay. The model does not know.

# %%
rng = np.random.default_rng(0)


def day(number):
    """Scores and outcomes of one day."""
    rows = slice(15_000 + 250 * (number - 1), 15_000 + 250 * number)
    stays = (number > 80) & (rng.random(250) < 0.15)
    return scores[rows], np.where(stays, 0, y[rows])


monitor = cal.Monitor(calibrator, alpha=0.05, least=0.02)
for number in range(1, 121):
    s, came = day(number)
    reading = monitor.update(came, scores=s, when=f"day {number}")
    if reading.alarm is not None:
        break
print(monitor)

# %% [markdown]
# The chance that the monitor *ever* raises a false alarm is 5 %, for all days together.
# `least=0.02` says that errors of a probability below 0.02 are no change. The alarm came within ten
# days of the change, after 80 quiet days.

# %%
# picture: what came each day beside what was expected, and the evidence below, which rises at the
# end and reaches the line of the alarm
cal.diagrams.monitor_diagram(monitor, title="Up to the alarm").savefig("monitoring.png")

# %% [markdown]
# ## Mend the calibrator
#
# The alarm comes early, with few rows since the change. Wait two weeks, then compare old and new
# rows.

# %%
alarm = number  # the day at which the loop ended
later = [day(number) for number in range(alarm + 1, alarm + 15)]
new_scores = np.concatenate([s for s, _ in later])
new_y = np.concatenate([came for _, came in later])
old = cal.ScoreTable.from_arrays(scores[5_000:15_000], y[5_000:15_000])
new = cal.ScoreTable.from_arrays(new_scores, new_y)
drift = cal.check_drift(old, new, calibrator=calibrator)
print(drift)

# %%
mended = drift.update(calibrator)

# %% [markdown]
# ## Is it better now?
#
# Judge it on the days that follow, which nobody has used yet.

# %%
following = [day(number) for number in range(alarm + 15, 121)]
s = np.concatenate([s for s, _ in following])
came = np.concatenate([came for _, came in following])
p, q = calibrator.calibrate(s), mended.calibrate(s)
print(cal.evaluate(came, q, raw=p, measures=["log_loss", "ece"]))
print(f"expected before {p.mean():.4f}, expected now {q.mean():.4f}, came {came.mean():.4f}")

# %% [markdown]
# `before` is the old calibrator here. Save the new one, and start a new monitor with it. Read on:
# [watch it every day](../howto/monitor.md), [is it still right?](../howto/drift.md).
