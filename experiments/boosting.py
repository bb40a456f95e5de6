"""What boosting does to probabilities, and how much data mends it.

``python -m experiments.boosting`` repeats, on the four public problems of Niculescu-Mizil and
Caruana (2005), the comparison of corrections (the shape of Table 2, at a fixed number of steps) and
the learning curves of Platt's method and isotonic regression (Figure 5), and checks the paper's
claim that Platt's method is the better one below about 2,000 calibration rows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import calibrant as cal
from experiments import RESULTS, keep, say, table
from experiments.data import DataMissingError, Task, read, tasks
from experiments.study import encode

Array = NDArray[np.float64]

#: rows to train on, as in the authors' companion papers, and rows used in all at most
TRAIN, MOST = 4000, 34_000
STEPS = 256
CLIP = 1e-6
PROBLEMS = {
    "covtype_largest": "COV_TYPE",
    "adult": "ADULT",
    "letter_p1": "LETTER.p1",
    "letter_p2": "LETTER.p2",
}
CALIBRATORS: dict[str, Callable[[], Any]] = {
    "Platt": lambda: cal.Platt(scale="raw"),
    "isotonic": cal.Isotonic,
    "Platt on the logit": cal.Platt,
}
LEARNERS = ("stump", "tree")
#: cross-entropy in bits that the paper prints (Table 2): raw, Platt, isotonic, logistic correction,
#: log loss; the best of its styles and numbers of steps
PUBLISHED = {
    ("stump", "COV_TYPE"): (0.7571, 0.6705, 0.6714, 0.6785, 0.6932),
    ("stump", "ADULT"): (0.5891, 0.4570, 0.4632, 0.4585, 0.4905),
    ("stump", "LETTER.p1"): (0.2825, 0.0797, 0.0837, 0.0820, 0.0869),
    ("stump", "LETTER.p2"): (0.8018, 0.5437, 0.5485, 0.5452, 0.5789),
    ("tree", "COV_TYPE"): (0.6241, 0.5113, 0.5179, 0.7787, 0.7062),
    ("tree", "ADULT"): (0.5439, 0.4957, 0.5072, 0.5330, 0.5094),
    ("tree", "LETTER.p1"): (0.0975, 0.0375, 0.0378, 0.1172, 0.0799),
    ("tree", "LETTER.p2"): (0.3901, 0.1451, 0.1412, 0.5255, 0.3461),
}


class Rows(NamedTuple):
    """A problem, its words made numbers: rows to train on and rows to test on."""

    train: Array
    y: NDArray[np.intp]
    test: Array
    y_test: NDArray[np.intp]


def rows_of(task: Task, train: int = TRAIN, most: int = MOST) -> Rows:
    """The rows of a problem in a random order."""
    X, y = read(task, most)
    order = np.random.default_rng(0).permutation(len(y))
    first, rest = order[:train], order[train:]
    coder = encode(X.iloc[first])
    A, B = (coder.transform(X.iloc[part]) for part in (first, rest))
    return Rows(A, y[first], B, y[rest])


def booster(learner: str, loss: str = "exponential", steps: int = STEPS) -> cal.AdaBoost:
    return cal.AdaBoost(learner, loss=loss, n_estimators=steps, random_state=0)


def corrections(rows: Rows, learner: str, steps: int = STEPS) -> list[dict[str, Any]]:
    """Raw, calibrated by three folds, corrected, and boosted with the log loss."""
    plain = booster(learner, steps=steps).fit(rows.train, rows.y)
    direct = booster(learner, "log", steps).fit(rows.train, rows.y)
    found = {"raw": plain.raw_score(rows.test)}
    for name in ("Platt", "isotonic"):
        model = cal.CalibratedClassifier(booster(learner, steps=steps), CALIBRATORS[name](), cv=3)
        found[name] = model.fit(rows.train, rows.y).calibrate(rows.test)
    found["logistic correction"] = plain.predict_proba(rows.test)[:, 1]
    found["log loss"] = direct.predict_proba(rows.test)[:, 1]
    return [
        {"method": name, "bits": cal.log_loss(rows.y_test, p, base=2, clip=CLIP),
         "Brier": cal.brier(rows.y_test, p)}
        for name, p in found.items()
    ]  # fmt: skip


def curve(rows: Rows, steps: int = STEPS, **options: Any) -> cal.LearningCurve:
    """Figure 5 for one problem: the Brier score against the number of calibration rows."""
    scores = booster("tree", steps=steps).fit(rows.train, rows.y).raw_score(rows.test)
    named = {name: make() for name, make in CALIBRATORS.items()}
    return cal.learning_curve(named, scores, rows.y_test, random_state=0, **options)


def corrections_table(results: pd.DataFrame) -> str:
    methods = ["raw", "Platt", "isotonic", "logistic correction", "log loss"]
    rows = []
    for (learner, problem), part in results.groupby(["learner", "problem"], sort=False):
        by = part.set_index("method")
        cells = [f"{by.loc[m, 'bits']:.3f} / {by.loc[m, 'Brier']:.3f}" for m in methods]
        rows.append((learner, problem, *cells))
        published = PUBLISHED[str(learner), str(problem)]
        rows.append(("", "published", *(f"{figure:.3f}" for figure in published)))
    return table(("learner", "problem", *methods), rows)


def curves_table(curves: dict[str, cal.LearningCurve]) -> str:
    """The mean over problems at each size, and where isotonic regression overtakes."""
    first = next(iter(curves.values()))
    mean = np.mean([c.mean for c in curves.values()], axis=0)
    rows = [
        (int(size), *(f"{value:.4f}" for value in mean[:, s])) for s, size in enumerate(first.sizes)
    ]
    return table(("calibration rows", *first.names), rows)


def crossings_table(curves: dict[str, cal.LearningCurve]) -> str:
    rows = []
    for problem, c in curves.items():
        gap = c.difference("isotonic", "Platt")
        sure = [int(size) for size, low in zip(c.sizes, gap.low, strict=True) if low > 0]
        crossing = c.crossing("Platt", "isotonic")
        rows.append((problem, crossing or "never", max(sure) if sure else "none"))
    head = "isotonic better from", "Platt better beyond doubt up to"
    return table(("problem", *head), rows)


HEADING = """# Boosting and its probabilities, after Niculescu-Mizil and Caruana (2005)

Boosted on {train:,} rows for {steps:,} steps, judged on up to {test:,} other rows. The paper picks
the best of many tree styles and numbers of steps; here there is one of each, so its figures stand
beside ours for the order of the methods, not for equality. Platt's method and isotonic regression
are fitted to raw scores pooled over three folds of the training rows.

Made by `python -m experiments.boosting`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="64 steps, nothing kept")
    quick = parser.parse_args().quick
    steps = 64 if quick else STEPS
    try:
        known = {task.name: task for task in tasks(0)}
    except DataMissingError as error:
        sys.exit(str(error))
    compared, curves = [], {}
    for name, problem in PROBLEMS.items():
        rows = rows_of(known[name])
        for learner in LEARNERS:
            found = corrections(rows, learner, steps)
            compared += [{"learner": learner, "problem": problem, **row} for row in found]
        curves[problem] = curve(rows, steps)
        say(f"{problem}: {len(rows.y_test)} rows to test on")
    results = pd.DataFrame(compared).sort_values("learner", kind="stable")
    parts = [
        HEADING.format(train=TRAIN, steps=steps, test=MOST - TRAIN),
        "## Corrections\n\nCross-entropy in bits / Brier score; published: cross-entropy.\n\n"
        + corrections_table(results),
        "## Learning curves of boosted trees\n\nBrier score, mean over the problems and ten draws."
        "\n\n" + curves_table(curves),
        "## Where isotonic regression overtakes Platt's method\n\nPaired draws; beyond doubt: the "
        "95 % band of the difference is on Platt's side.\n\n" + crossings_table(curves),
    ]
    if quick:
        say("\n\n".join(parts))
        return
    keep("boosting.md", "\n\n".join(parts))
    results.round(4).to_csv(RESULTS / "boosting.csv", index=False)
    long = [
        {"problem": problem, "rows": int(size), "method": method, "Brier": c.mean[m, s],
         "standard error": c.standard_error[m, s]}
        for problem, c in curves.items()
        for m, method in enumerate(c.names)
        for s, size in enumerate(c.sizes)
    ]  # fmt: skip
    pd.DataFrame(long).round(6).to_csv(RESULTS / "boosting_curves.csv", index=False)


if __name__ == "__main__":
    main()
