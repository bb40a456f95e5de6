# %% [markdown]
# # Sixty branches, most of them small
#
# After this example you can calibrate each branch, country or product by itself without being
# misled by the small ones.
#
# One model scores the loans of all branches of a bank. Customers differ between branches, and the
# model does not know of it. Large branches have thousands of loans, small ones a few dozen.

# %%
import numpy as np

import calibrant as cal

rng = np.random.default_rng(4)
sizes = np.round(6_000 / np.arange(1, 61)).astype(int)  # loans of each branch
branch = np.repeat([f"branch {i:02}" for i in range(1, 61)], sizes)
shift = np.repeat(rng.normal(0, 0.5, 60), sizes)  # how its customers differ, in log-odds
z = rng.normal(-2, 1.2, len(branch))
y = rng.random(len(z)) < 1 / (1 + np.exp(-z - shift))
scores = 1 / (1 + np.exp(-z))
fit = rng.random(len(z)) < 0.2
print(f"{fit.sum():,} loans to learn from, {sizes.min()} to {sizes.max():,} in a branch")

# %% [markdown]
# ## Three ways
#
# One map for all branches; a map for each branch alone; and a mixture of both, in which a branch
# counts the more the more loans it has.

# %%
one = cal.BLS().fit(scores[fit], y[fit])
alone = cal.SegmentedCalibrator(cal.Platt(), shrinkage=0, min_rows=1)
mixed = cal.SegmentedCalibrator()
p = {"one map": one.calibrate(scores[~fit])}
for name, method in {"each branch alone": alone, "mixed": mixed}.items():
    method.fit(scores[fit], y[fit], segments=branch[fit])
    p[name] = method.calibrate(scores[~fit], segments=branch[~fit])

large = np.isin(branch[~fit], [f"branch {i:02}" for i in range(1, 11)])
print(f"{'log loss':18} {'10 large branches':>18} {'50 small branches':>18}")
for name, values in p.items():
    losses = (cal.metrics.log_loss(y[~fit][r], values[r]) for r in (large, ~large))
    print(f"{name:18} " + " ".join(f"{loss:18.4f}" for loss in losses))

# %% [markdown]
# A map for each branch alone helps where there are many loans, and does harm where there are few.
# The mixture is the best of the three in both.
#
# ## How much each branch counts

# %%
for part in [*mixed.segments_[:3], *mixed.segments_[-3:]]:
    print(f"{part.key}: {part.rows:5.0f} loans, share of its own map {part.share:.2f}")

# %% [markdown]
# ## Three branches
#
# The same loans under one map and under the mixture.

# %%
# picture: reliability of three branches; with one map, branch 03 lies above the diagonal, with the
# mixture all three follow it
chosen = np.isin(branch[~fit], ["branch 02", "branch 03", "branch 06"])
figure = cal.reliability_diagram(
    y[~fit][chosen],
    {name: p[name][chosen] for name in ("one map", "mixed")},
    segments=branch[~fit][chosen],
    band=None,
    bins=6,
)
figure.savefig("segments.png")

# %% [markdown]
# Read on: [segments](../howto/segments.md), [groups that nobody has named](where_wrong.md).
