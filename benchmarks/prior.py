"""Rates of unlabelled rows: how good they and their intervals are, also where they should fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from benchmarks.harness import setting, write
from calibrant import Platt
from calibrant.monitor import adjust_prior, estimate_rate, estimate_rates

REPEATS = 1000
SIZES = (500, 5000)
#: sets for intervals by bootstrap
BOOTSTRAPPED = 200
#: positives are N(GAP, 1), negatives N(0, 1), and this many of the training rows are positive
GAP, TRAIN = 1.5, 0.2

#: the columns of some lines only
LAST = (
    "excess log loss: as it was",
    "adjusted to the estimate",
    "to the true rate",
    "passes (EM)",
)

Array = np.ndarray
Rng = np.random.Generator
#: probabilities of x, and the rate at which they are meant to be calibrated
Claim = Callable[[Array, Rng], tuple[Array, float]]


def posterior(x: Array, rate: float) -> Array:
    """P(positive | x) at a rate."""
    return expit(GAP * x - GAP * GAP / 2 + logit(rate))


def drawn(n: int, rate: float, rng: Rng) -> Array:
    """x of rows of which a share is positive."""
    return rng.normal(GAP * (rng.random(n) < rate))


@dataclass(frozen=True)
class Case:
    """New rows x, what is claimed of them, and the truth."""

    name: str
    rows: Callable[[int, Rng], Array]
    claimed: Claim
    truth: Callable[[Array], Array]
    rate: float


def exact(x: Array, rng: Rng) -> tuple[Array, float]:
    """The probabilities that are right in training."""
    return posterior(x, TRAIN), TRAIN


def fitted(x: Array, rng: Rng) -> tuple[Array, float]:
    """Those of a calibrator that saw 1,000 rows."""
    y = rng.random(1000) < TRAIN
    p = posterior(rng.normal(GAP * y), TRAIN)
    return Platt().fit(p, y).calibrate(posterior(x, TRAIN)), float(y.mean())


def too_sure(x: Array, rng: Rng) -> tuple[Array, float]:
    """Probabilities of logits 1.5 times too large."""
    return expit(1.5 * logit(posterior(x, TRAIN))), TRAIN


def label_shift(name: str, rate: float, claimed: Claim) -> Case:
    """Only the rates differ."""
    return Case(
        name,
        lambda n, rng: drawn(n, rate, rng),
        claimed,
        lambda x: posterior(x, rate),
        rate,
    )


def covariate_shift(name: str, move: float) -> Case:
    """Other rows: x of the training rows, moved; what x says of y is as it was."""
    many = drawn(10**6, TRAIN, np.random.default_rng(0)) + move
    return Case(
        name,
        lambda n, rng: drawn(n, TRAIN, rng) + move,
        exact,
        lambda x: posterior(x, TRAIN),
        float(posterior(many, TRAIN).mean()),
    )


CASES = (
    label_shift("only rates differ", 0.02, exact),
    label_shift("only rates differ", 0.05, exact),
    label_shift("only rates differ", 0.2, exact),
    label_shift("only rates differ", 0.6, exact),
    label_shift("the same, p of Platt on 1,000 rows", 0.05, fitted),
    label_shift("the same, p too sure (logit × 1.5)", 0.05, too_sure),
    covariate_shift("other rows, p still right", -0.5),
    covariate_shift("other rows, p still right", 0.5),
)


def excess(truth: Array, p: Array) -> float:
    """Expected log loss beyond that of the truth, in 10⁻⁴."""
    p = np.clip(p, 1e-12, 1 - 1e-12)
    odds = truth * np.log(truth / p) + (1 - truth) * np.log((1 - truth) / (1 - p))
    return 1e4 * float(odds.mean())


def em_rounds(p: Array, train: float, most: int = 10**5) -> int:
    """Rounds of EM until the rate moves by less than 1e-9."""
    rate = train
    for done in range(1, most):
        moved = adjust_prior(p, train_rate=train, target_rate=rate).mean()
        if abs(moved - rate) < 1e-9 or moved < 1e-9:
            return done
        rate = moved
    return most


def line(case: Case, n: int) -> dict[str, object]:
    """One line of the table."""
    rng = np.random.default_rng(n)
    rates, hits, passes, rounds = [], 0, [], []
    losses = np.zeros(3)
    for repeat in range(REPEATS):
        x = case.rows(n, rng)
        (p, train), truth = case.claimed(x, rng), case.truth(x)
        found = estimate_rate(p, train_rate=train)
        rates.append(found.rate)
        hits += found.low <= case.rate <= found.high
        passes.append(found.iterations)
        if repeat < 10:
            rounds.append(em_rounds(p, train))
        moved = (train, np.clip(found.rate, 1e-6, 1 - 1e-6), case.rate)
        losses += [
            excess(truth, adjust_prior(p, train_rate=train, target_rate=float(rate)))
            for rate in moved
        ]
    error = np.array(rates) - case.rate
    before, after, known = losses / REPEATS
    return {
        "new rows": case.name,
        "N": n,
        "true rate": f"{case.rate:.3f}",
        "mean estimate": f"{np.mean(rates):.3f}",
        "root mean square error": f"{np.sqrt((error**2).mean()):.4f}",
        "95 % interval holds": f"{100 * hits / REPEATS:.1f} %",
        LAST[0]: f"{before:.1f}",
        LAST[1]: f"{after:.1f}",
        LAST[2]: f"{known:.1f}",
        LAST[3]: f"{np.median(passes):.0f} ({np.median(rounds):.0f})",
    }


def bootstrap_line(n: int, rate: float = 0.05, resamples: int = 100) -> dict[str, object]:
    """Old and new rows drawn again, the calibrator refitted, and quantiles of its estimates."""
    rng = np.random.default_rng(n)
    rates, hits = [], 0
    for _ in range(BOOTSTRAPPED):
        y = rng.random(1000) < TRAIN
        old = posterior(rng.normal(GAP * y), TRAIN)
        new = posterior(drawn(n, rate, rng), TRAIN)
        again = []
        for _ in range(resamples):
            i, j = rng.integers(0, len(y), len(y)), rng.integers(0, n, n)
            p = Platt().fit(old[i], y[i]).calibrate(new[j])
            again.append(estimate_rate(p, train_rate=y[i].mean()).rate)
        low, high = np.quantile(again, [0.025, 0.975])
        hits += low <= rate <= high
        rates.append(estimate_rate(Platt().fit(old, y).calibrate(new), train_rate=y.mean()).rate)
    error = np.sqrt(((np.array(rates) - rate) ** 2).mean())
    return {
        "new rows": "p of Platt on 1,000 rows, interval by bootstrap",
        "N": n,
        "true rate": f"{rate:.3f}",
        "mean estimate": f"{np.mean(rates):.3f}",
        "root mean square error": f"{error:.4f}",
        "95 % interval holds": f"{100 * hits / BOOTSTRAPPED:.1f} %",
    } | dict.fromkeys(LAST, "")


def classes_line(n: int) -> dict[str, object]:
    """The same for three classes, all three together."""
    rng = np.random.default_rng(n)
    train, target = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.3, 0.5])
    hits, rates = np.zeros(3), []
    for _ in range(REPEATS):
        x = GAP * np.eye(3)[rng.choice(3, n, p=target)] + rng.normal(size=(n, 3))
        p = np.exp(GAP * x) * train
        found = estimate_rates(p / p.sum(axis=1, keepdims=True), train_rate=train)
        hits += (found.low <= target) & (target <= found.high)
        rates.append(found.rate)
    error = np.sqrt(((np.array(rates) - target) ** 2).mean(axis=0))
    return {
        "new rows": "three classes, only rates differ",
        "N": n,
        "true rate": " ".join(f"{rate:.1f}" for rate in target),
        "mean estimate": " ".join(f"{rate:.3f}" for rate in np.mean(rates, axis=0)),
        "root mean square error": " ".join(f"{rate:.4f}" for rate in error),
        "95 % interval holds": " ".join(f"{100 * rate / REPEATS:.1f}" for rate in hits) + " %",
    } | dict.fromkeys(LAST, "")


def lines() -> Iterator[dict[str, object]]:
    """All lines of the table."""
    for case in CASES:
        for n in SIZES:
            yield line(case, n)
    yield from map(bootstrap_line, SIZES)
    yield from map(classes_line, SIZES)


def run(sizes: list[int]) -> None:
    """Simulate and write ``results/prior.md`` and ``results/prior.csv``; N is fixed."""
    begin, rows = os.getloadavg()[0], []
    for found in lines():
        rows.append(found)
        print(found, flush=True)
    heading = f"""# Rates of unlabelled rows

{REPEATS:,} simulated sets for each line ({BOOTSTRAPPED} for the bootstrap). Positives are
N({GAP}, 1), negatives N(0, 1), a share of {TRAIN} of the training rows is positive, and p is what
follows from that, unless said otherwise. `estimate_rate` sees p of N new rows and the rate at which
p is calibrated; for Platt that of the rows it was fitted to. "Other rows": x of the training rows,
moved by −0.5 or 0.5, while what x says of y is as it was. Excess log loss is that of p beyond the
true probabilities, in 10⁻⁴ (less is better): of p as it was, and of p adjusted by `adjust_prior` to
the estimated and to the true rate. Passes over the rows until the rate is found, and in brackets
rounds of EM until it moves by less than 10⁻⁹ (medians).

{setting(["calibrant", "numpy", "scipy"])}. One-minute load average before and after:
{begin:.1f}, {os.getloadavg()[0]:.1f}. Made by `python -m benchmarks prior`."""
    write("prior", rows, heading)
