"""Table 1 (a, b) of Naeini, Cooper and Hauskrecht: ``python -m experiments.binning_simulated``.

Two simulated problems that no line separates, logistic regression as the model: its scores are
useless as a ranking, but the positives sit where the scores are extreme (or in the middle), so a
calibrator that may go up and down recovers most of what there is. The published figures are of
one draw; here are mean and standard deviation over many draws.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from experiments import RESULTS, keep, table

Array = NDArray[np.float64]

ROWS = 600
#: how far from a diagonal (degrees) the fitted direction may be for an XOR draw to count as near
NEAR = 15.0
#: how many standard deviations from the mean count as within the spread
SPREAD = 2.5

METHODS: dict[str, Callable[[], Any]] = {
    "LR": cal.Identity,
    "IsoReg": cal.Isotonic,
    "Platt": lambda: cal.Platt(scale="raw"),
    "Hist": lambda: cal.Histogram(bins=10),
    "SBB": lambda: cal.SBB(lambda_="empirical"),  # one binning, as in the paper
    "ABB": cal.ABB,
}
#: ACP at these levels of the model's intervals; the paper speaks of 95 %, and of "adjusting" them
ACP = {"ACP": 0.95, "ACP, 10 % intervals": 0.1}
COLUMNS = ("LR", "ACP", "IsoReg", "Platt", "Hist", "SBB", "ABB")


def _published(text: str) -> dict[str, dict[str, float]]:
    """Measure → method → figure, from lines of a name and one figure per method."""
    rows = (line.split() for line in text.strip().splitlines())
    found = {row[0]: dict(zip(COLUMNS, map(float, row[1:]), strict=True)) for row in rows}
    for figures in found.values():
        figures.update(dict.fromkeys(ACP, figures["ACP"]))
    return found


PUBLISHED = {
    "XOR": _published(
        """
        AUC  .497 .950 .704 .497 .931 .914 .941
        ACC  .510 .887 .690 .510 .855 .887 .888
        RMSE .500 .286 .447 .500 .307 .307 .295
        MCE  .521 .090 .642 .521 .152 .268 .083
        ECE  .190 .056 .173 .190 .072 .104 .062
        """
    ),
    "circular": _published(
        """
        AUC  .489 .852 .635 .489 .827 .816 .838
        ACC  .500 .780 .655 .500 .795 .790 .773
        RMSE .501 .387 .459 .501 .394 .393 .390
        MCE  .540 .172 .608 .539 .121 .790 .146
        ECE  .171 .098 .186 .171 .074 .138 .091
        """
    ),
}


def xor(rows: int, rng: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
    """Gaussian blobs of sd ½ around (±1, ±1); positive where the signs differ."""
    sign = rng.choice([-1.0, 1.0], size=(rows, 2))
    return sign + 0.5 * rng.standard_normal((rows, 2)), (sign[:, 0] != sign[:, 1]).astype(np.intp)


def circular(rows: int, rng: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
    """A disc of radius 2 (negative) in a ring up to 4 (positive), uniform in radius and angle."""
    y = rng.permutation(np.arange(rows) % 2)
    radius, angle = rng.uniform(0, 2, rows) + 2.0 * y, rng.uniform(0, 2 * np.pi, rows)
    return np.column_stack((radius * np.cos(angle), radius * np.sin(angle))), y


PROBLEMS = {"XOR": xor, "circular": circular}


def measures(y: NDArray[np.intp], p: Array) -> dict[str, float]:
    """The paper's measures, the last two as published and in our own reading."""
    return {
        "AUC": cal.auc(y, p),
        "ACC": float(np.mean((p >= 0.5) == y)),
        "RMSE": cal.rmse(y, p),
        "MCE": cal.mce(y, p, kind="mass", ties="authors"),
        "ECE": math.sqrt(cal.ece(y, p, kind="mass", ties="authors") / 10),
        "MCE, ties together": cal.mce(y, p, kind="mass"),
        "ECE, plain": cal.ece(y, p, kind="mass"),
    }


def from_diagonal(direction: Array) -> float:
    """Degrees between a direction in the plane and the nearer diagonal, 0 to 45."""
    angle = math.degrees(math.atan2(abs(direction[1]), abs(direction[0])))
    return abs(angle - 45.0)


def one_draw(problem: str, seed: int, methods: tuple[str, ...]) -> list[dict[str, Any]]:
    """600 rows each to train, to calibrate and to test: a row of measures per method."""
    rng = np.random.default_rng(seed)
    (train, y_train), (calibration, y), (test, y_test) = (
        PROBLEMS[problem](ROWS, rng) for _ in range(3)
    )
    model = LogisticRegression(C=1e6).fit(train, y_train)
    scores, new = (model.predict_proba(part)[:, 1] for part in (calibration, test))
    near = from_diagonal(model.coef_[0])
    rows = []
    for name in methods:
        if name in ACP:
            fitted = (train, y_train)
            lower, upper = cal.prediction_interval(model, test, ACP[name], train=fitted)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cal.CalibrationWarning)  # empty intervals
                p = cal.ACP().fit(scores, y).calibrate(new, lower=lower, upper=upper)
        else:
            p = METHODS[name]().fit(scores, y).calibrate(new)
        rows.append({"seed": seed, "off diagonal": near, "method": name, **measures(y_test, p)})
    return rows


def draws(problem: str, seeds: int, methods: tuple[str, ...] = (*METHODS, *ACP)) -> pd.DataFrame:
    """All draws of a problem, one row per seed and method."""
    return pd.DataFrame([row for seed in range(seeds) for row in one_draw(problem, seed, methods)])


def near_diagonal(results: pd.DataFrame) -> pd.DataFrame:
    """The draws whose fitted direction is near a diagonal."""
    return results[results["off diagonal"] <= NEAR]


def beside_published(problem: str, results: pd.DataFrame) -> pd.DataFrame:
    """Per method and measure: mean, sd, the published figure, and whether it is in the spread."""
    names = [name for name in results.columns if name not in {"seed", "off diagonal", "method"}]
    rows = []
    for method, part in results.groupby("method", sort=False):
        for name in names:
            mean, sd = float(part[name].mean()), float(part[name].std())
            figure = PUBLISHED[problem].get(name, {}).get(str(method), math.nan)
            rows.append((method, name, mean, sd, figure, (figure - mean) / sd))
    columns = ["method", "measure", "mean", "sd", "published", "apart"]
    return pd.DataFrame(rows, columns=columns).assign(within=lambda s: s["apart"].abs() <= SPREAD)


def as_table(summary: pd.DataFrame) -> str:
    """The summary for reading; our own readings of MCE and ECE have nothing to stand beside."""
    rows = []
    for row in summary.itertuples():
        ours = (row.method, row.measure, f"{row.mean:.3f} ± {row.sd:.3f}")
        published = (f"{row.published:.3f}", f"{row.apart:+.1f}", "yes" if row.within else "no")
        rows.append((*ours, *(("", "", "") if math.isnan(row.published) else published)))
    columns = ("method", "measure", "mean ± sd", "published", "sd apart", "within the spread")
    return table(columns, rows)


HEADING = """# Simulated problems of Naeini, Cooper and Hauskrecht (2015), Table 1 (a) and (b)

{seeds} draws of 600 rows each to train, to calibrate and to test; logistic regression (not
regularised) as the model. The paper does not say which λ it took: here SBB has the λ of the largest
evidence and ABB averages over λ. "Sd apart": how many standard deviations the published figure,
which is of one draw, lies from the mean over draws; "within the spread": at most {spread}.

MCE and ECE are as the authors' programs compute them: ten groups of equal size, tied predictions
ordered by label, and √(ECE/10) printed as ECE. "MCE, ties together" and "ECE, plain" are the two
measures with ties kept together and no square root.

ACP takes the frequency among calibration scores within the interval of a score. The paper says that
it "adjusts" the 95 % interval of the logistic regression, not how. Here are the 95 % intervals by
the delta method and, since they are so wide on these problems that they average the shape away,
10 % ones; the published column stands beside both.

For XOR the model's direction is a matter of chance, and only near a diagonal does its score tell
the classes apart; the published figures are of such a draw. Hence two tables, of all draws and of
those within {near:g}° of a diagonal. Over all draws the standard deviations are so large that
"within the spread" says little.

Made by `python -m experiments.binning_simulated`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many draws (default 200)")
    seeds = parser.parse_args().seeds
    everything = {problem: draws(problem, seeds) for problem in PROBLEMS}
    diagonal = near_diagonal(everything["XOR"])
    count = diagonal["seed"].nunique()
    parts = {
        f"XOR, the {count} draws near a diagonal": ("XOR", diagonal),
        "XOR, all draws": ("XOR", everything["XOR"]),
        "Circular": ("circular", everything["circular"]),
    }
    text = [HEADING.format(seeds=seeds, spread=SPREAD, near=NEAR)]
    frames = []
    for title, (problem, results) in parts.items():
        summary = beside_published(problem, results)
        text.append(f"## {title}\n\n{as_table(summary)}")
        frames.append(summary.assign(draws=title))
    keep("binning_simulated.md", "\n\n".join(text))
    pd.concat(frames).round(4).to_csv(RESULTS / "binning_simulated.csv", index=False)


if __name__ == "__main__":
    main()
