"""The paper's future work, done: several classes, and the nodes of joint models."""

from __future__ import annotations

import pandas as pd

from experiments.papers.bella2009.summaries import by_dataset, differs
from experiments.papers.cells import Claim
from experiments.papers.naeini2015 import joint
from experiments.papers.several_classes import REFERENCES

__all__ = ["future_work"]

LEFT = "left as future work"
NOTHING = "nothing to hold it against"


def future_work(results: dict[str, pd.DataFrame]) -> list[Claim]:
    """What the authors meant to do next. The average over λ is the library's default."""
    return [_classes(results["multiclass"]), _joint(results["joint"])]


def _classes(frame: pd.DataFrame) -> Claim:
    text = "SBB and ABB can be extended to several classes"
    if not len(frame):
        return Claim(text, LEFT, "not run yet", None).resting_on("multiclass")
    means = by_dataset(frame, "log loss")
    words = (
        f"{name} than {', than '.join(f'{r} {differs(means[name], means[r])}' for r in REFERENCES)}"
        for name in ("SBB", "ABB")
    )
    note = f"{NOTHING}; each class against the rest; datasets won, and Wilcoxon's p"
    claim = Claim(text, LEFT, f"smaller log loss: {'; '.join(words)}", None, note)
    return claim.resting_on("multiclass")


def _joint(frame: pd.DataFrame) -> Claim:
    text = (
        "Calibration can be used on posterior probabilities of joint models, such as max-margin "
        "Markov networks"
    )
    if not len(frame):
        return Claim(text, LEFT, "not run yet", None).resting_on("joint")
    words = []
    for model in [name for name in joint.MODELS if name in set(frame["model"])]:
        part = frame[frame["model"] == model]
        won, draws = joint.better(frame, model, "ABB", "log loss")
        before, after = (part[f"{name} log loss"].mean() for name in (joint.BASE, "ABB"))
        words.append(f"{model}: {before:.3f} → {after:.3f}, better in {won} of {draws} draws")
    ours = f"log loss of nodes before and after ABB, {'; '.join(words)}"
    return Claim(text, LEFT, ours, None, NOTHING).resting_on("joint")
