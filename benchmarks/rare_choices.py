"""Few events: does `AutoCalibrator` take the better of the scores as they are and BLS?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import expit, logit

import calibrant as cal
from benchmarks.rare_signals import Array, Population, at_rate

EVENTS, RATES, DRAWS = (10, 20, 30, 50), (1e-2, 1e-4), 100

#: what is true beside scores that look like probabilities: their own log-odds z, moved
DISTORTIONS: dict[str, Callable[[Array], Array]] = {
    "right": lambda z: z,
    "rate halved": lambda z: z - np.log(2.0),
    "too sure": lambda z: 0.6 * z,
    "too timid": lambda z: 1.6 * z,
}


def choices() -> Iterator[dict[str, object]]:
    """How often the worse was taken, and what that cost."""
    share = np.full(2000, 1 / 2000)
    for rate in RATES:
        claimed = at_rate(1.5 * logit((np.arange(2000) + 0.5) / 2000), share, rate)
        for name, moved in DISTORTIONS.items():
            t = expit(moved(logit(claimed)))
            if name in ("too sure", "too timid"):
                t = at_rate(moved(logit(claimed)), share, rate)
            for events in EVENTS:
                line = {"rate": f"{rate:.0e}", "scores are": name, "events": events}
                yield line | _choice(Population(claimed, share, t), events)


def _choice(population: Population, events: int) -> dict[str, object]:
    rng, claimed = np.random.default_rng(events), population.scores
    kept = wrong = 0
    regret, gain = [], []
    for _ in range(DRAWS):
        n0, n1 = population.drawn(events / population.rate, rng)
        table = cal.ScoreTable.from_counts(claimed, n0, n1)
        auto, bls = cal.AutoCalibrator().fit_table(table), cal.BLS().fit_table(table)
        both = [population.excess(p) for p in (claimed, bls.map_(claimed))]
        taken = both[0] if auto.chosen_ == "identity" else both[1]
        kept += auto.chosen_ == "identity"
        wrong += taken > min(both)
        regret.append(taken - min(both))
        gain.append(both[0] - taken)
    return {
        "scores kept": f"{100 * kept / DRAWS:.0f} %",
        "the worse was taken": f"{100 * wrong / DRAWS:.0f} %",
        "regret, nats an event": f"{np.mean(regret):.4f}",
        "gain over the scores": f"{np.mean(gain):+.4f}",
    }


HEADING = """# AutoCalibrator with few events

{where}. Made by `python -m benchmarks rare`; {draws} draws a line. Scores are probabilities with
log-odds around the rate; the truth is as they say, half of it, 0.6 times their log-odds, or 1.6
times (at the same rate). *The worse was taken*: the choice between the scores as they are and BLS
that has the greater expected log loss on new rows. *Regret*: what that cost on average, in nats
for each event."""
