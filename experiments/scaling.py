"""Scalings of several classes on networks' outputs: ``python -m experiments.scaling [--quick]``.

CIFAR-10: the logits of a ResNet-50 (5,000 rows to fit on, 10,000 to judge on) and the
probabilities of a VGG-16 (10,000 rows, cut into halves at random).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import calibrant as cal
from experiments import RESULTS, keep, say, table
from experiments.data import DataMissingError, read_arrays
from experiments.study import options

Array = NDArray[np.float64]

SIZES = (200, 1000, 5000)
MEASURES = ("log loss", "Brier", "top-label ECE", "class-wise ECE", "accuracy")
BINS = 15
CLASSES = list(range(10))

METHODS: dict[str, Any] = {
    "temperature": cal.Temperature(classes=CLASSES),
    "vector": cal.VectorScaling(classes=CLASSES),
    "vector, no gate": cal.VectorScaling(classes=CLASSES, gate=False),
    "matrix": cal.MatrixScaling(classes=CLASSES),
    "matrix, no gate": cal.MatrixScaling(classes=CLASSES, gate=False),
    "Dirichlet": cal.Dirichlet(classes=CLASSES),
    "structured vector": cal.StructuredScaling(structure="vector", classes=CLASSES),
    "structured matrix": cal.StructuredScaling(classes=CLASSES),
    "structured matrix, no gate": cal.StructuredScaling(classes=CLASSES, gate=False),
}


class Rows(NamedTuple):
    """Scores and labels to fit on, scores and labels to judge on, and the latter's own p."""

    scores: NDArray[Any]
    y: NDArray[np.intp]
    new: NDArray[Any]
    y_new: NDArray[np.intp]
    p: Array


def resnet() -> Rows:
    """Logits, with the split of the source."""
    data = read_arrays("nn-cifar10-resnet50-logits")
    z = data["test_logits"].astype(np.float64)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    y, y_new = (data[f"{part}_labels"].astype(np.intp) for part in ("val", "test"))
    return Rows(data["val_logits"], y, data["test_logits"], y_new, p)


def vgg(seed: int) -> Rows:
    """Probabilities, cut into halves at random."""
    data = read_arrays("nn-cifar10-vgg16-probs")
    p, y = data["test_probs"].astype(np.float64), data["test_labels"].astype(np.intp)
    order = np.random.default_rng(seed).permutation(len(y))
    fit, test = order[: len(y) // 2], order[len(y) // 2 :]
    return Rows(p[fit], y[fit], p[test], y[test], p[test])


def judge(p: Array, y: NDArray[np.intp]) -> dict[str, float]:
    """The measures of distributions p of labels y; ECE with 15 bins of equal width."""
    own = p[np.arange(len(y)), y]
    best = p.argmax(axis=1)
    square = (p * p).sum(axis=1) - 2 * own + 1
    by_class = [cal.metrics.ece(y == c, p[:, c], bins=BINS) for c in CLASSES]
    top = cal.metrics.ece(best == y, p.max(axis=1), bins=BINS)
    figures = -np.log(own).mean(), square.mean(), top, np.mean(by_class), (best == y).mean()
    return dict(zip(MEASURES, map(float, figures), strict=True))


def compare(name: str, rows: Rows, n: int, seed: int) -> Iterator[dict[str, Any]]:
    """A line per method, fitted to n of the rows."""
    some = np.random.default_rng(seed).permutation(len(rows.y))[:n]
    case = {"data": name, "n": n, "seed": seed}
    yield {**case, "method": "none", "seconds": 0.0, "kept": "", **judge(rows.p, rows.y_new)}
    for method, calibrator in METHODS.items():
        begin = time.process_time()
        calibrator.fit(rows.scores[some], rows.y[some])
        seconds = time.process_time() - begin
        line = {**case, "method": method, "seconds": seconds}
        line["kept"] = getattr(calibrator, "kept_", "fit")
        yield {**line, **judge(calibrator.predict_proba(rows.new), rows.y_new)}


def lines(seeds: int) -> Iterator[dict[str, Any]]:
    """All cases: 5,000 rows of the ResNet's are all there are, so they are fitted once."""
    for seed in range(seeds):
        for n in SIZES:
            if n < 5000 or seed == 0:
                yield from compare("ResNet-50 logits", resnet(), n, seed)
            yield from compare("VGG-16 probabilities", vgg(seed), n, seed)
        say(f"seed {seed} done")


def summary(results: pd.DataFrame, minutes: float) -> str:
    """The study as a page."""
    parts = [HEADING.format(minutes=minutes, seeds=results["seed"].nunique())]
    for (name, n), part in results.groupby(["data", "n"]):
        parts.append(f"## {name}, {n} rows\n\n{as_table(part)}")
    return "\n\n".join(parts)


def as_table(part: pd.DataFrame) -> str:
    """Means over seeds, how often the log loss rose, and how often the gate kept the fit."""
    before = part[part["method"] == "none"].set_index("seed")["log loss"]
    rows = []
    for method, group in part.groupby("method", sort=False):
        mean = group[list(MEASURES)].mean()
        worse = (group.set_index("seed")["log loss"] > before).mean()
        fits = (group["kept"] == "fit").mean()
        seconds = group["seconds"].median()
        told = (f"{worse:.0%}", f"{fits:.0%}", f"{seconds:.2f}")
        told = told if method != "none" else ("", "", "")
        rows.append((method, *(f"{value:.4f}" for value in mean), *told))
    columns = ("method", *MEASURES, "worse than none", "fit kept", "CPU seconds")
    return table(columns, rows)


HEADING = """# Scalings of several classes on CIFAR-10

Means over {seeds} random choices of the rows to fit on (one of 5,000 of the ResNet's, which are all
there are), judged on 10,000 (ResNet) and 5,000 (VGG) other rows. Brier sums over classes; ECE has
15 bins of equal width, top-label of the largest probability, class-wise averaged over the ten
classes. "Worse than none" is how often the log loss rose above that of the scores as they are,
"fit kept" how often the gate let the fit stand (else a temperature, or the scores as they are,
took its place). "No gate" is the method as published; matrix scaling and Dirichlet choose λ = μ
by five folds.

Made by `python -m experiments.scaling`, which took {minutes:.1f} minutes."""


def main() -> None:
    chosen = options(__doc__, seeds=10)
    begin = time.monotonic()
    try:
        results = pd.DataFrame(lines(1 if chosen.quick else chosen.seeds))
    except DataMissingError as error:
        sys.exit(str(error))
    page = summary(results, (time.monotonic() - begin) / 60)
    if chosen.quick:
        say(page)
        return
    keep("scaling.md", page)
    mean = results.drop(columns=["kept", "seconds"]).groupby(["data", "n", "method"], sort=False)
    figures = mean[list(MEASURES)].agg(["mean", "std"]).round(5)
    figures.columns = [" ".join(names) for names in figures.columns]
    figures.to_csv(RESULTS / "scaling.csv")


if __name__ == "__main__":
    main()
