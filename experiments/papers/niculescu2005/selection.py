"""Of all styles and numbers of steps, the one that is best on the rows to select on."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from experiments.papers.niculescu2005.problems import PROBLEMS

__all__ = ["MEAN", "candidates", "chosen", "mean_of_problems", "relative_change"]

MEAN = "mean of the four"
KEYS = ["dataset", "learner", "style", "seed"]
CASE = ["dataset", "learner", "seed", "method", "measure"]
COLUMN = r"^(?P<method>.+) (?P<step>\d+) (?P<measure>bits|squared) (?P<part>validation|test)$"


def candidates(frame: pd.DataFrame) -> pd.DataFrame:
    """A line per style, step, method and measure, with its figure on both parts.

    Only what the first two seeds of a problem have in common, and further seeds that have all of
    it: else seeds would differ by more than chance. A longer run of boosting repeats the figures of
    a shorter one, which are dropped.
    """
    names = [name for name in frame if pd.Series([name]).str.match(COLUMN).iloc[0]]
    long = frame.melt(id_vars=[*KEYS, "steps"], value_vars=names, value_name="figure").dropna()
    words = long.pop("variable").str.extract(COLUMN)
    long = pd.concat([long, words.astype({"step": int})], axis=1)
    alike = [*KEYS, "method", "step", "measure", "part"]
    long = long.sort_values("steps", kind="stable").drop_duplicates(alike, keep="last")
    wide = long.set_index(alike)["figure"].unstack("part").reset_index()
    groups = [_in_common(part) for _, part in wide.groupby(["dataset", "learner"], sort=False)]
    return pd.concat(groups, ignore_index=True)


def _in_common(part: pd.DataFrame) -> pd.DataFrame:
    """Of one problem and learner: what the first two seeds have, of the seeds that have it all."""
    which = pd.MultiIndex.from_frame(part[["style", "step", "method", "measure"]])
    seeds = part["seed"].to_numpy()
    have = {seed: set(which[seeds == seed]) for seed in sorted(set(seeds))}
    wanted = set.intersection(*list(have.values())[:2])
    complete = [seed for seed, found in have.items() if wanted <= found]
    return part[which.isin(list(wanted)) & part["seed"].isin(complete)]


def chosen(frame: pd.DataFrame) -> pd.DataFrame:
    """The best by each measure on the rows to select on, with its figure on the test rows."""
    found = candidates(frame)
    return found.loc[found.groupby(CASE, sort=False)["validation"].idxmin()].reset_index(drop=True)


def mean_of_problems(best: pd.DataFrame, problems: Sequence[str] = PROBLEMS) -> pd.DataFrame:
    """Per seed, the mean test figure over problems, of the seeds that have them all.

    Rows are seeds; columns are learner, measure and method.
    """
    part = best[best["dataset"].isin(problems)]
    grid = part.pivot_table(
        index=["seed", "dataset"], columns=["learner", "measure", "method"], values="test"
    )
    sizes = grid.groupby("seed").count()
    return grid.groupby("seed").mean().where(sizes == len(problems))


def relative_change(after: pd.Series, before: pd.Series) -> pd.Series:
    """How much less (negative) than before, as a share, seed by seed."""
    return (after / before - 1.0).dropna()
