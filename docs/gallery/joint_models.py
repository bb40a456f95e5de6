# %% [markdown]
# # The nodes of a joint model
#
# After this example you can calibrate the marginals of a Markov chain, a random field or a
# tagger, with errors that know that the nodes of one structure belong together.
#
# A joint model says something of many variables at once. What is used of it are often the
# marginals: the probability that *this* node is 1, given all that was seen of the structure.
# Where the model is wrong, they are wrong. To calibrate them, pool the marginals of all nodes and
# take them as scores. But nodes of one structure share what the model got wrong about it, so they
# are not so many independent rows. Tell the structures by `groups=`.
#
# Machines are on or off, minute by minute, and a noisy sensor is read each minute. The model
# knows the kind of truth, a hidden Markov chain, but not its numbers: it takes a machine to stay
# as it is with probability .95 where .8 is true, and all sensors to be equally noisy.

# %%
import numpy as np

import calibrant as cal

LENGTH = 60


def draw(rng, structures):
    """States (structures × LENGTH), readings, and the noise of each structure's sensor."""
    y = np.empty((structures, LENGTH), dtype=int)
    y[:, 0] = rng.random(structures) < 0.5
    for t in range(1, LENGTH):
        stays = rng.random(structures) < 0.8
        y[:, t] = np.where(stays, y[:, t - 1], 1 - y[:, t - 1])
    noise = 1.5 * np.exp(rng.normal(0, 0.5, size=structures))
    return y, 2 * y - 1 + noise[:, None] * rng.normal(size=y.shape), noise


def marginals(x, stay=0.95, noise=1.5):
    """P(node is 1 | all readings of its structure), exactly: forward and backward in the model."""
    like = np.exp(-0.5 * ((x[..., None] - [-1.0, 1.0]) / noise) ** 2)
    step = np.array([[stay, 1 - stay], [1 - stay, stay]])
    ahead, back = like.copy(), np.ones_like(like)
    for t in range(1, LENGTH):
        before = ahead[:, t - 1] / ahead[:, t - 1].sum(axis=1, keepdims=True)
        ahead[:, t] *= before @ step
    for t in range(LENGTH - 2, -1, -1):
        after = (back[:, t + 1] * like[:, t + 1]) @ step
        back[:, t] = after / after.sum(axis=1, keepdims=True)
    both = ahead * back
    return both[..., 1] / both.sum(axis=2)


def pooled(rng, structures):
    """Marginals, states and structures of all nodes, one row each; and the sensors' noise."""
    y, x, noise = draw(rng, structures)
    groups = np.repeat(np.arange(structures), LENGTH)
    return marginals(x).ravel(), y.ravel(), groups, np.repeat(noise, LENGTH)


# %% [markdown]
# ## Fit with groups
#
# Fifty structures of sixty nodes to fit to. With `groups=` a structure is in one fold, and the
# standard errors are those of structures.

# %%
rng = np.random.default_rng(0)
p, y, groups, _ = pooled(rng, 50)

auto = cal.AutoCalibrator().fit(p, y, groups=groups)
by_rows = cal.AutoCalibrator().fit(p, y)  # as if 3,000 nodes were 3,000 witnesses
for name, found in (("structures", auto), ("rows", by_rows)):
    best = found.leaderboard_["BLS"]
    between = f"{best.gain_low:.2f} to {best.gain_high:.2f}"
    print(f"folds of {name}: log loss {best.log_loss:.3f}, gain {best.gain:.2f} ({between})")

# %% [markdown]
# ## Judge on new structures
#
# With groups g of nodes t and differences d of two losses, the standard error is √(G/(G − 1) ·
# Σ_g (Σ_t (d_gt − d̄))²) / n.

# %%
new, truth, where, noise = pooled(rng, 300)
q = auto.calibrate(new)

change = cal.metrics.loss_difference(truth, new, q, groups=where)
print(f"log loss {change.first:.3f} before, {change.second:.3f} after")
print(f"the gain lies between {change.low:.3f} and {change.high:.3f}")

# %% [markdown]
# `evaluate` does not know of groups. For any measure that takes `sample_weight`, draw structures
# with replacement instead; a structure's weight is how often it came.


# %%
def ece_interval(truth, p, where, replicates=200):
    """A 95 % interval of the ECE from structures drawn again (reflected: redrawing adds error)."""
    rng = np.random.default_rng(0)
    count = where.max() + 1
    drawn = rng.multinomial(count, np.full(count, 1 / count), size=replicates)
    found = [cal.metrics.ece(truth, p, sample_weight=times[where]) for times in drawn]
    low, high = np.quantile(found, [0.025, 0.975])
    value = cal.metrics.ece(truth, p)
    return value, max(2 * value - high, 0.0), 2 * value - low


for name, each in (("before", new), ("after", q)):
    value, low, high = ece_interval(truth, each, where)
    rows = cal.evaluate(truth, each).intervals["ece"]
    print(f"ECE {name} {value:.3f}, by structures {low:.3f} to {high:.3f}, ", end="")
    print(f"by rows {rows[0]:.3f} to {rows[1]:.3f}")

# %%
# picture: reliability of the marginals before and after calibration, on 300 new structures
figure = cal.reliability_diagram(truth, {"marginals": new, "calibrated": q}, bins=15)
figure.savefig("joint_models.png")

# %% [markdown]
# ## Are rows too sure?
#
# Here the truth can be drawn again. Two hundred times, fifty new structures: how far does the
# gain vary, what do the two standard errors say, and how often does the 95 % interval hold the
# gain that 20,000 structures show?

# %%
far, right, _, _ = pooled(np.random.default_rng(1), 20_000)
target = cal.metrics.loss_difference(right, far, auto.calibrate(far)).difference

gains, errors, holds = [], {"rows": [], "structures": []}, {"rows": 0, "structures": 0}
for seed in range(200):
    a, b, g, _ = pooled(np.random.default_rng(1000 + seed), 50)
    for name, kept in (("rows", None), ("structures", g)):
        one = cal.metrics.loss_difference(b, a, auto.calibrate(a), groups=kept)
        errors[name].append(one.std_error)
        holds[name] += one.low <= target <= one.high
    gains.append(one.difference)
print(f"the gain varies by {np.std(gains):.3f}")
for name, each in errors.items():
    print(f"standard error by {name} {np.mean(each):.3f}, ", end="")
    print(f"the interval holds in {holds[name] / 200:.0%}")

# %% [markdown]
# Standard errors of rows are about half of what they must be.
#
# And the folds? A map of one score cannot learn a structure by heart, but it learns something of
# it. A hundred times, twenty structures: the log loss of isotonic regression as five folds see
# it, and what the very same maps lose on structures that none of them has seen.

# %%
from sklearn.model_selection import GroupKFold, KFold

iso = cal.Isotonic(smoothing="laplace")
unseen, state = far[7::59], right[7::59]
for name, cv in (("rows", KFold(5, shuffle=True, random_state=0)), ("structures", GroupKFold(5))):
    by_folds, by_new = [], []
    for seed in range(100):
        a, b, g, _ = pooled(np.random.default_rng(5000 + seed), 20)
        held = np.empty(len(a))
        for train, test in cv.split(a, b, g if name == "structures" else None):
            held[test] = iso.fit(a[train], b[train]).calibrate(a[test])
            by_new.append(cal.metrics.log_loss(state, iso.calibrate(unseen)))
        by_folds.append(cal.metrics.log_loss(b, held))
    chance = np.std(by_folds) / 10  # of the mean of a hundred
    print(f"folds of {name}: {np.mean(by_folds):.3f} ± {chance:.3f}, new {np.mean(by_new):.3f}")

# %% [markdown]
# Folds of rows promise a smaller loss than new structures show; folds of structures do not.
#
# ## What stays wrong
#
# Each marginal is moved by the same map. Pairs of nodes and the likeliest sequence are as before.
# If the model can be mended, mend it first. And *calibrated* means over the pool: quiet and noisy
# sensors are mixed.

# %%
quiet = noise < np.median(noise)
for name, part in (("quiet", quiet), ("noisy", ~quiet)):
    print(f"{name} sensors: ECE {cal.metrics.ece(truth[part], q[part]):.3f}, ", end="")
    print(f"{cal.metrics.ece(truth[part], new[part]):.3f} before")

# %% [markdown]
# Where such a thing can be seen, the parts get a map each.
#
# Read on: [segments](../howto/segments.md), [trained
# models](../evidence/papers/naeini2015.md#nodes-of-joint-models).
