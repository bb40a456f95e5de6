"""AdaBoost: fits and predictions per round beside scikit-learn's, with the same trees."""

from __future__ import annotations

import functools
import os
import time
import warnings
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

import calibrant as cal
from benchmarks.harness import peak, setting, write

SIZES = (10**4, 10**5)
COLUMNS = 20
#: rounds of a fit, by estimator and N: enough for a second or so
ROUNDS = {
    ("stump", 10**4): 40,
    ("stump", 10**5): 6,
    ("tree", 10**4): 8,
    ("tree", 10**5): 2,
}
#: how often each is measured, in turns
TURNS = 5
#: times scikit-learn's CPU time per round, at most
TARGET = 1.0

#: the same trees, for scikit-learn's boosting
TREES = {
    "stump": DecisionTreeClassifier(max_depth=1),
    "tree": DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2),
}


def data(n: int) -> tuple[Any, Any]:
    """Rows with 20 columns; one label in ten is noise, so that no tree is perfect."""
    return make_classification(n, COLUMNS, n_informative=8, flip_y=0.1, random_state=0)


def in_turns(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float, Any]:
    """Median CPU seconds of both, and the median of the ratios of neighbouring calls."""
    taken: list[tuple[float, float]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours(), theirs()
        for turn in range(TURNS):
            pair = [0.0, 0.0]
            for i in (0, 1) if turn % 2 else (1, 0):
                start = time.process_time()
                (ours, theirs)[i]()
                pair[i] = time.process_time() - start
            taken.append((pair[0], pair[1]))
    return (
        median(a for a, _ in taken),
        median(b for _, b in taken),
        median(a / b for a, b in taken),
    )


def lines(n: int) -> Iterator[dict[str, object]]:
    """All measurements of one N."""
    X, y = data(n)
    for name, tree in TREES.items():
        rounds = ROUNDS[name, n]
        ours = cal.boosting.AdaBoost(name, n_estimators=rounds, random_state=0)
        theirs = AdaBoostClassifier(tree, n_estimators=rounds, random_state=0)
        calls: dict[str, list[Callable[[], object]]] = {
            "fit": [functools.partial(model.fit, X, y) for model in (ours, theirs)],
        }
        ours.fit(X, y), theirs.fit(X, y)
        same = np.allclose(2 * ours.alphas_, theirs.estimator_weights_, rtol=1e-6)
        calls["decision_function"] = [
            functools.partial(model.decision_function, X) for model in (ours, theirs)
        ]
        for part, pair in calls.items():
            first, second, ratio = in_turns(*pair)
            memory = [peak(call) / X.nbytes for call in pair]
            yield {
                "N": f"{n:.0e}",
                "estimator": name,
                "part": part,
                "rounds": rounds,
                "ms / round": round(1e3 * first / rounds, 3),
                "scikit-learn": round(1e3 * second / rounds, 3),
                "ratio": round(ratio, 3),
                "target": f"≤ {TARGET:g}",
                "met": "yes" if ratio <= TARGET else "no",
                "same α": "yes" if same else "no",
                "peak / X": round(memory[0], 2),
                "scikit-learn's": round(memory[1], 2),
            }


def run(sizes: list[int]) -> None:
    """Measure and write ``results/boosting.md`` and ``results/boosting.csv``."""
    loads, rows = [os.getloadavg()[0]], []
    for n in (size for size in SIZES if size <= max(sizes)):
        for line in lines(n):
            rows.append(line)
            print(line, flush=True)
        loads.append(os.getloadavg()[0])
    heading = f"""# AdaBoost

CPU time per round of `AdaBoost` and of scikit-learn's `AdaBoostClassifier` with the same tree and
the same seeds on the same {COLUMNS} columns of float64: median of {TURNS} calls of each, taken in
turns after a first one; the ratio is the median of the ratios of neighbouring calls. A fit is
nearly all sorting inside the trees, which both have in common; what differs is that rows are
checked and converted once and not in every round. `same α` says whether all α agree; for full trees
they need not, since rounding decides between equally good splits of a few rows in scikit-learn, and
only the seed does here. Peak memory is what Python and NumPy allocate at most during a call, trees
included, in copies of X.

{setting(["calibrant", "numpy", "scipy", "scikit-learn"])}. One-minute load average before and after
each N: {", ".join(f"{load:.1f}" for load in loads)}. Made by `python -m benchmarks boosting`."""
    write("boosting", rows, heading)
