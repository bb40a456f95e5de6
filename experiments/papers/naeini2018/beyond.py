"""What the paper says without figures, and its future work, judged by runs of our own."""

from __future__ import annotations

import pandas as pd

from experiments.papers.bella2009.summaries import by_dataset, differs
from experiments.papers.cells import Claim
from experiments.papers.naeini2018.methods import PAPERS_MEASURES
from experiments.papers.naeini2018.models import MODELS
from experiments.papers.naeini2018.union import SMALL, UNION, against, small
from experiments.papers.several_classes import REFERENCES

__all__ = ["ALIKE", "future_work", "left_out"]

Frames = dict[str, pd.DataFrame]
#: a median difference below this is called similar, as the paper does of ELiTE and ENIR
ALIKE = 0.01
LEFT = "left as future work"
NOTHING = "nothing to hold it against"
FEWEST = 5


def left_out(found: Frames) -> list[Claim]:
    """Why the paper leaves ABB out of its tables."""
    frame, sizes = found["union"], found["2"]
    if not len(frame) or not len(sizes):
        return []
    rows = dict(zip(sizes["dataset"], sizes["rows"], strict=True))
    part = small(frame, rows)
    datasets = part["dataset"].nunique()
    if datasets < FEWEST or part["model"].nunique() < len(MODELS):
        return []
    gaps = {
        (model, measure): against(part, model, measure, ("ABB", "BBQ"))
        for model in MODELS
        for measure in PAPERS_MEASURES
    }
    (model, measure), most = max(gaps.items(), key=lambda item: abs(item[1].median))
    shown = {
        word: [f"{m} with {k}" for (k, m), gap in gaps.items() if gap.verdict(m) == word]
        for word in ("better", "worse")
    }
    told = "; ".join(
        f"ABB is {word} in {', '.join(names)}" for word, names in shown.items() if names
    )
    claim = Claim(
        "Even on small datasets ABB performs like BBQ",
        "observed, no figures",
        f"median differences at most {abs(most.median):.4f} ({measure} with {model}); beyond "
        f"chance: {told or 'none'}",
        all(abs(gap.median) < ALIKE for gap in gaps.values()),
        f"holds: all {len(gaps)} median differences below {ALIKE:g}; Wilcoxon's p, not corrected",
    )
    part_of = f"{len(part)} of them: {datasets} datasets of at most {SMALL:,} rows"
    return [claim.resting_on("union", selection=part_of)]


def future_work(found: Frames) -> list[Claim]:
    """What the authors meant to do next, done."""
    told = []
    if found["union"]["dataset"].nunique() >= FEWEST:
        told.append(_union(found["union"]))
    for name, measure in (("multiclass", "MSE"), ("multilabel", "Brier")):
        if len(found[name]):
            told.append(_several(found[name], name, measure))
    return told


def _union(frame: pd.DataFrame) -> Claim:
    text = "Near-isotonic and piecewise linear constraints can be combined in one map"
    words = []
    for rival in ("ELiTE", "ENIR"):
        gaps = {m: against(frame, m, "RMSE", (UNION, rival)) for m in MODELS}
        words.append(f"minus {rival}: {', '.join(f'{m} {gap}' for m, gap in gaps.items())}")
    ours = f"median difference in RMSE, {'; '.join(words)}"
    return Claim(text, LEFT, ours, None, NOTHING).resting_on("union")


def _several(frame: pd.DataFrame, name: str, measure: str) -> Claim:
    """ENIR against the same use of isotonic regression and of Platt's method."""
    text = f"ENIR can be extended to {name.replace('multi', 'multi-')} calibration"
    words = []
    for each in ("log loss", measure):
        means = by_dataset(frame, each)
        against_them = (f"{r} {differs(means['ENIR'], means[r])}" for r in REFERENCES)
        words.append(f"smaller {each} than {'; than '.join(against_them)}")
    ours = ", ".join(words)
    note = f"{NOTHING}; datasets won, and Wilcoxon's p"
    return Claim(text, LEFT, f"ENIR has a {ours}", None, note).resting_on(name)
