"""Rare events: how far each method is from a known truth, and whether it keeps the base rate.

Uniform scores stand on a fixed grid, finer towards 1, with whole numbers of rows at each: so a
billion rows cost as much as a thousand. Every repetition draws how many rows of each place are
positive; the probabilities that come of it are compared with the truth on the whole population.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, xlogy

import calibrant as cal
from benchmarks.harness import setting, write, write_csv

REPEATS = 20
RATES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
EVENTS = (10, 30, 100, 1000)
#: events of the study of choices, rates there, and repetitions
FEW, FEW_RATES, CHOICES = (10, 20, 30, 50), (1e-2, 1e-4), 100

Array = np.ndarray
Rng = np.random.Generator
Predict = Callable[[Array], Array]


def grid(rate: float) -> tuple[Array, Array]:
    """Scores and the share of rows at each: even steps, and finer ones towards 1."""
    fine = 1.0 - np.geomspace(0.1, rate / 50.0, 1500)
    edges = np.unique(np.concatenate((np.linspace(0.0, 0.9, 1501), fine, [1.0])))
    return (edges[1:] + edges[:-1]) / 2.0, np.diff(edges)


def at_rate(log_odds: Array, share: Array, rate: float) -> Array:
    """Probabilities of these log-odds, all shifted so that their mean is the rate."""
    shift = brentq(lambda d: share @ expit(log_odds + d) - rate, -60.0, 60.0, xtol=1e-12)
    return np.asarray(expit(log_odds + shift))


def truth(signal: str, s: Array, share: Array, rate: float) -> Array:
    """P(positive | score)."""
    if signal == "steep":  # a third of the top 3·rate, and next to nothing below
        return np.where(s > 1.0 - 3.0 * rate, 1.0 / 3.0, rate * 1e-6)
    return at_rate(4.0 * s if signal == "smooth" else 2.0 * logit(s), share, rate)


def excess(t: Array, p: Array) -> Array:
    """Expected log loss of a row beyond that of the truth."""
    p = np.clip(p, 1e-300, 1.0 - 2.0**-53)
    return np.asarray(
        xlogy(t, t) - xlogy(t, p) + xlogy(1.0 - t, 1.0 - t) - (1.0 - t) * np.log1p(-p)
    )


# --- methods --------------------------------------------------------------------------------------


def ours(make: Callable[[], Any]) -> Callable[[Array, Array, Array], Predict]:
    """A calibrator of ours, fitted to the table."""

    def fit(s: Array, n0: Array, n1: Array) -> Predict:
        return make().fit_table(cal.ScoreTable.from_counts(s, n0, n1)).map_

    return fit


def peer(make: Callable[[], Any], predict: str, **options: Any) -> Any:
    """A peer that takes weights: two rows for each score."""

    def fit(s: Array, n0: Array, n1: Array) -> Predict:
        y, w = np.repeat([0, 1], len(s)), np.concatenate((n0, n1))
        some = w > 0
        model = make()
        model.fit(np.tile(s, 2)[some], y[some], sample_weight=w[some], **options)
        return lambda new: np.asarray(getattr(model, predict)(new))

    return fit


def methods() -> dict[str, Any]:
    """Ours and the peers that are installed."""
    from sklearn.calibration import _SigmoidCalibration
    from sklearn.isotonic import IsotonicRegression

    found = {
        "BLS": ours(cal.BLS),
        "Spline": ours(cal.Spline),
        "Platt": ours(cal.Platt),
        "Beta": ours(cal.Beta),
        "Quadratic": ours(cal.Quadratic),
        "Isotonic": ours(cal.Isotonic),
        "VennAbers": ours(cal.VennAbers),
        "ENIR": ours(cal.ENIR),
        "sklearn sigmoid": peer(_SigmoidCalibration, "predict"),
        "sklearn isotonic": peer(lambda: IsotonicRegression(out_of_bounds="clip"), "predict"),
    }
    try:
        beta = importlib.import_module("betacal").BetaCalibration
    except ImportError:
        return found
    return {**found, "betacal": peer(beta, "predict")}


# --- the tables -----------------------------------------------------------------------------------


def drawn(t: Array, share: Array, rows: float, rng: Rng) -> tuple[Array, Array]:
    """Negatives and positives at each score; at least one positive."""
    while True:
        n = rng.multinomial(round(rows), share / share.sum()).astype(float)
        n1 = rng.binomial(n.astype(np.int64), t).astype(float)
        if n1.sum() > 0:
            return n - n1, n1


def lines() -> Iterator[dict[str, object]]:
    """A line for each signal, rate, number of events and method."""
    for signal in ("smooth", "strong", "steep"):
        for rate in RATES:
            s, share = grid(rate)
            t = truth(signal, s, share, rate)
            for events in EVENTS:
                yield from _setting(signal, rate, events, (s, share, t))


def _setting(
    signal: str, rate: float, events: int, population: tuple[Array, Array, Array]
) -> Iterator[dict[str, object]]:
    s, share, t = population
    rows, rng = events / rate, np.random.default_rng(events)
    samples = [drawn(t, share, rows, rng) for _ in range(REPEATS)]
    for name, fit in methods().items():
        losses, sums, fitted = [], [], []
        for n0, n1 in samples:
            p = fit(s, n0, n1)(s)
            losses.append(float(share @ excess(t, p)) / rate)
            sums.append(float(share @ p) / rate)
            fitted.append(float((n0 + n1) @ p) / float(n1.sum()))
        low, high = np.quantile(sums, [0.05, 0.95])
        yield {
            "signal": signal,
            "rate": f"{rate:.0e}",
            "events": events,
            "method": name,
            "excess nats an event": f"{np.mean(losses):.3g}",
            "Σp/Σy fitted": f"{np.mean(fitted):.3f}",
            "Σp/Σy new": f"{np.mean(sums):.3f}",
            "5 to 95 %": f"{low:.2f} to {high:.2f}",
        }


def summary(found: list[dict[str, Any]]) -> list[dict[str, object]]:
    """A line for each method: what it loses to the truth, and what its probabilities sum to."""
    rows: list[dict[str, object]] = []
    for name in dict.fromkeys(line["method"] for line in found):
        own = [line for line in found if line["method"] == name]
        row: dict[str, object] = {"method": name}
        for signal in ("smooth", "strong", "steep"):
            for events in (30, 1000):
                some = [
                    float(line["excess nats an event"])
                    for line in own
                    if line["signal"] == signal and int(line["events"]) == events
                ]
                row[f"{signal}, {events}"] = f"{np.mean(some):.3g}"
        sums = [float(line["Σp/Σy fitted"]) for line in own if int(line["events"]) >= 30]
        few = [float(line["Σp/Σy fitted"]) for line in own if int(line["events"]) == 10]
        row["Σp/Σy, ≥ 30 events"] = f"{min(sums):.3f} to {max(sums):.3f}"
        row["10 events"] = f"{min(few):.2f} to {max(few):.2f}"
        rows.append(row)
    return rows


#: what is true beside scores that look like probabilities: their own log-odds z, moved
DISTORTIONS: dict[str, Callable[[Array], Array]] = {
    "right": lambda z: z,
    "rate halved": lambda z: z - np.log(2.0),
    "too sure": lambda z: 0.6 * z,
    "too timid": lambda z: 1.6 * z,
}


def choices() -> Iterator[dict[str, object]]:
    """How often `AutoCalibrator` takes the worse of the scores and BLS, and what that costs."""
    q = (np.arange(2000) + 0.5) / 2000
    for rate in FEW_RATES:
        claimed = at_rate(1.5 * logit(q), np.full(2000, 1 / 2000), rate)
        for name, moved in DISTORTIONS.items():
            t = expit(moved(logit(claimed)))
            if name in ("too sure", "too timid"):
                t = at_rate(moved(logit(claimed)), np.full(2000, 1 / 2000), rate)
            for events in FEW:
                yield _choice(rate, name, events, claimed, t)


def _choice(rate: float, name: str, events: int, claimed: Array, t: Array) -> dict[str, object]:
    share, rng = np.full(len(t), 1 / len(t)), np.random.default_rng(events)
    kept = wrong = 0
    regret, gain = [], []
    for _ in range(CHOICES):
        n0, n1 = drawn(t, share, events / float(t.mean()), rng)
        auto = cal.AutoCalibrator().fit_table(cal.ScoreTable.from_counts(claimed, n0, n1))
        bls = cal.BLS().fit_table(cal.ScoreTable.from_counts(claimed, n0, n1))
        both = [float(excess(t, p).mean()) / float(t.mean()) for p in (claimed, bls.map_(claimed))]
        taken = both[0] if auto.chosen_ == "identity" else both[1]
        kept += auto.chosen_ == "identity"
        wrong += taken > min(both)
        regret.append(taken - min(both))
        gain.append(both[0] - taken)
    return {
        "rate": f"{rate:.0e}",
        "scores are": name,
        "events": events,
        "scores kept": f"{100 * kept / CHOICES:.0f} %",
        "the worse was taken": f"{100 * wrong / CHOICES:.0f} %",
        "regret, nats an event": f"{np.mean(regret):.4f}",
        "gain over the scores": f"{np.mean(gain):+.4f}",
    }


def run(sizes: list[int]) -> None:
    """Write both tables; the sizes do not matter, rows are grouped."""
    packages = ["calibrant", "numpy", "scipy", "scikit-learn", "betacal"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on few events: they are the point
        found = list(lines())
        write_csv("rare_lines", found)
        heading = HEADING.format(repeats=REPEATS, where=setting(packages))
        write("rare", summary(found), heading)
        write("rare_choices", list(choices()), CHOSEN.format(choices=CHOICES))


HEADING = """# Rare events

{where}. Made by `python -m benchmarks rare`; all lines are in `rare_lines.csv`.

*Signals* of uniform scores s: *smooth* has log-odds 4·s, *strong* 2·logit(s), both shifted to the
rate; *steep* makes a third of the top 3·rate positive, and next to nothing else. Rates are 0.1 to
10⁻⁶, and with each 30 or 1,000 events are expected (so up to a billion rows); {repeats} draws a
line. *Figures*: expected log loss on new rows beyond that of the truth, in nats for each event,
averaged over the rates. *Σp/Σy*: on the fitted rows, least and greatest mean of any line."""

CHOSEN = """# AutoCalibrator with few events

{choices} draws a line; made by `python -m benchmarks rare`. Scores are probabilities with log-odds
around the rate; the truth is as they say, half of it, 0.6 times their log-odds, or 1.6 times (at
the same rate). *The worse was taken*: the choice between the scores as they are and BLS that has
the greater expected log loss on new rows. *Regret*: what that cost on average, in nats for each
event."""
