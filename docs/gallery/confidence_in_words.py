# %% [markdown]
# # "Almost certain": the confidence of a language model in words
#
# After this example you can turn words of confidence into probabilities, and decide which answers a
# person should check.
#
# A language model ends each answer with one of seven phrases. For 1,200 answers a person has
# checked whether they are right. The answers are simulated here, so that the example runs anywhere.

# %%
import matplotlib.figure
import numpy as np

import calibrant as cal

phrases = np.array(
    ["no idea", "unlikely", "perhaps", "probably", "very likely", "almost certain", "certain"]
)
rng = np.random.default_rng(1)
truth = rng.normal(0.6, 1.4, 5_000)  # the log-odds that the answer is right
right = rng.random(5_000) < 1 / (1 + np.exp(-truth))
felt = truth + rng.normal(1.0, 1.2, 5_000)  # the model flatters itself
phrase = phrases[np.searchsorted([-2, -1.2, -0.4, 0.5, 1.3, 2.6], felt)]
fit, new = slice(0, 1_200), slice(1_200, None)

# %% [markdown]
# ## What the phrases mean
#
# The numbers that people have in mind for these phrases are a fair start. `Isotonic` then learns
# how often each is right. It only assumes that a stronger phrase is not right less often.

# %%
meant = dict(zip(phrases, [0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0], strict=True))
score = np.array([meant[one] for one in phrase])
calibrator = cal.Isotonic(smoothing="laplace").fit(score[fit], right[fit])
for one in phrases:
    rows = phrase[fit] == one
    p = calibrator.calibrate([meant[one]])[0]
    print(f"{one:15} said {meant[one]:.2f}   {rows.sum():4} answers   calibrated {p:.2f}")

# %% [markdown]
# "Certain" is right in about three of four answers. Equal phrases always get equal probabilities.
#
# ## Before and after, on other answers

# %%
p = calibrator.calibrate(score[new])
print(cal.evaluate(right[new], p, raw=score[new], measures=["brier", "ece", "auc"]))

# %% [markdown]
# ## Who checks what?
#
# A wrong answer that nobody checks costs 10, a check costs 3. A check pays where more than three of
# ten answers are wrong, so where the probability to be right is below 0.7.

# %%
for name, q in {"as said": score[new], "calibrated": p}.items():
    check = q < 0.7
    cost = np.where(check, 3, 10 * ~right[new]).mean()
    print(f"{name:11} {check.mean():.2f} of the answers checked, cost {cost:.2f} for each")
print(f"{'no checks':11} cost {10 * (~right[new]).mean():.2f} for each")

# %%
# picture: for each phrase a bar with the share of right answers, what was said, and what was
# learned; the strong phrases promise more than they keep
figure = matplotlib.figure.Figure(figsize=(4.6, 3.0), dpi=150, layout="constrained")
axes = figure.add_subplot()
shares = [right[new][phrase[new] == one].mean() for one in phrases]
axes.barh(phrases, shares, color="#56B4E9", label="right, of new answers")
axes.plot([meant[one] for one in phrases], phrases, "o", color="#D55E00", label="as said")
learned = calibrator.calibrate([meant[one] for one in phrases])
axes.plot(learned, phrases, "D", color="#222222", label="calibrated")
axes.set_xlim(0, 1.02)
axes.set_xlabel("probability that the answer is right")
axes.legend(fontsize=8, loc="lower right")
figure.savefig("confidence_in_words.png")

# %% [markdown]
# Read on: [confidence of a language model](../howto/llm.md), also from log-probabilities, logits
# and repeated answers.
