"""Rare events: how far each method is from a known truth, and whether it keeps the base rate.

Every repetition draws how many rows of each place of a population are events; the probabilities
that come of it are compared with the truth on the whole population, which stands for new rows.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import calibrant as cal
from benchmarks import rare_choices
from benchmarks.harness import setting, write, write_csv
from benchmarks.rare_signals import INDEPENDENT, TUNED, Array, Population, Signal

REPEATS = 40
RATES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
EVENTS = (10, 30, 100, 1000)
PACKAGES = ["calibrant", "numpy", "scipy", "scikit-learn"]

Predict = Callable[[Array], Array]

# --- methods --------------------------------------------------------------------------------------


def ours(make: Callable[[], Any]) -> Callable[[Array, Array, Array], Predict]:
    """A calibrator of ours, fitted to the table."""

    def fit(s: Array, n0: Array, n1: Array) -> Predict:
        return make().fit_table(cal.ScoreTable.from_counts(s, n0, n1)).map_

    return fit


def peer(make: Callable[[], Any]) -> Callable[[Array, Array, Array], Predict]:
    """A peer that takes weights: two rows for each score."""

    def fit(s: Array, n0: Array, n1: Array) -> Predict:
        y, w = np.repeat([0, 1], len(s)), np.concatenate((n0, n1))
        some = w > 0
        model = make()
        model.fit(np.tile(s, 2)[some], y[some], sample_weight=w[some])
        return lambda new: np.asarray(model.predict(new))

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
        "sklearn sigmoid": peer(_SigmoidCalibration),
        "sklearn isotonic": peer(lambda: IsotonicRegression(out_of_bounds="clip")),
    }
    try:
        beta = importlib.import_module("betacal").BetaCalibration
    except ImportError:
        return found
    return {**found, "betacal": peer(beta)}


# --- the tables -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Line:
    """What the draws of one setting gave: excess loss, and Σp/Σy on new and on fitted rows."""

    signal: str
    rate: float
    events: int
    method: str
    losses: list[float]
    new: list[float]
    fitted: list[float]

    def shown(self) -> dict[str, object]:
        """As a row of the CSV."""
        low, high = np.quantile(self.new, [0.05, 0.95])
        return {
            "signal": self.signal,
            "rate": f"{self.rate:.0e}",
            "events": self.events,
            "method": self.method,
            "excess nats an event": f"{np.mean(self.losses):.3g}",
            "Σp/Σy fitted": f"{np.mean(self.fitted):.3f}",
            "Σp/Σy new": f"{np.mean(self.new):.3f}",
            "5 to 95 %": f"{low:.2f} to {high:.2f}",
        }


def lines(signals: dict[str, Signal]) -> Iterator[Line]:
    """A line for each signal, rate, number of events and method."""
    for signal, made in signals.items():
        for rate in RATES:
            population = made(rate)
            for events in EVENTS:
                seed = [events, RATES.index(rate), *signal.encode()]
                rng = np.random.default_rng(seed)
                samples = [population.drawn(events / rate, rng) for _ in range(REPEATS)]
                for method, fit in methods().items():
                    measured = [_measured(fit, population, *sample) for sample in samples]
                    figures = [list(column) for column in zip(*measured, strict=True)]
                    yield Line(signal, rate, events, method, *figures)


def _measured(fit: Any, population: Population, n0: Array, n1: Array) -> tuple[float, float, float]:
    p = fit(population.scores, n0, n1)(population.scores)
    new = float(population.share @ p) / population.rate
    return population.excess(p), new, float((n0 + n1) @ p) / float(n1.sum())


def summary(found: list[Line]) -> list[dict[str, object]]:
    """A line for each method: what it loses to the truth, and what its probabilities sum to."""
    rows: list[dict[str, object]] = []
    for name in dict.fromkeys(line.method for line in found):
        own = [line for line in found if line.method == name]
        row: dict[str, object] = {"method": name}
        for signal in dict.fromkeys(line.signal for line in own):
            for events in (30, 1000):
                some = [x for x in own if x.signal == signal and x.events == events]
                row[f"{signal}, {events}"] = f"{np.mean([x.losses for x in some]):.3g}"
        for events in (30, 1000):
            new = [x.new for x in own if x.events == events]
            low, high = np.quantile(new, [0.05, 0.95])
            row[f"Σp/Σy new, {events}"] = f"{np.mean(new):.2f} ({low:.2f} to {high:.2f})"
        sums = [float(np.mean(x.fitted)) for x in own if x.events >= 30]
        few = [float(np.mean(x.fitted)) for x in own if x.events == 10]
        row["Σp/Σy fitted, ≥ 30"] = f"{min(sums):.3f} to {max(sums):.3f}"
        row["fitted, 10"] = f"{min(few):.2f} to {max(few):.2f}"
        rows.append(row)
    return rows


def run(sizes: list[int]) -> None:
    """Write the three tables; the sizes do not matter, rows are grouped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on few events: they are the point
        write_methods("rare_independent", INDEPENDENT, NEW_SIGNALS)
        write_methods("rare", TUNED, OLD_SIGNALS)
        write_choices()


def write_methods(name: str, signals: dict[str, Signal], heading: str) -> None:
    """A table of all methods, and the lines that it sums up."""
    found = list(lines(signals))
    write_csv(f"{name}_lines", [line.shown() for line in found])
    where = setting([*PACKAGES, "betacal"])
    figures = FIGURES.format(repeats=REPEATS, where=where, name=name)
    write(name, summary(found), f"{heading}\n\n{figures}")


def write_choices() -> None:
    """The table of what `AutoCalibrator` takes."""
    heading = rare_choices.HEADING.format(draws=rare_choices.DRAWS, where=setting(PACKAGES))
    write("rare_choices", list(rare_choices.choices()), heading)


NEW_SIGNALS = """# Rare events: signals that no method was made on

Five signals, written down and committed before any method ran on them; no method was changed after
their results were seen.

- *skewed*: scores like a fraud model's, Beta(0.5, 20); the truth is a bent logit of the score,
  with slope 0.6 that grows to 1.6 around the 90th percentile.
- *floor*: half of the events are spread evenly over all rows, half are in a steep top.
- *level top*: log-odds 1.5 times the score's, level above the 99th percentile.
- *step*: nine times the odds above the median score.
- *concave*: log-odds 6·√s.

All but *floor* are shifted to the rate."""

OLD_SIGNALS = """# Rare events: the signals that BLS was made on

Three signals of uniform scores s that were looked at while BLS was made: *smooth* has log-odds
4·s, *strong* 2·logit(s), both shifted to the rate; *steep* makes a third of the top 3·rate
positive, and next to nothing else. Signals that nobody had looked at are in
`rare_independent.md`."""

FIGURES = """{where}. Made by `python -m benchmarks rare`; all lines are in
`{name}_lines.csv`.

Rates are 0.1 to 10⁻⁶, and with each 10, 30, 100 or 1,000 events are expected (so up to a billion
rows); {repeats} draws a line. Columns *signal, events*: expected log loss on new rows beyond that
of the truth, in nats for each event, averaged over the rates. *Σp/Σy new*: sum of the
probabilities on new rows over the expected events, mean and 5 to 95 % of all draws of all signals
and rates with so many events. *Fitted*: on the fitted rows, least and greatest mean of any line."""
