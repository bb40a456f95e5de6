"""How often tests of calibration cry wolf: ``python -m experiments.false_positives [--quick]``.

Labels are drawn from the predictions themselves, so that these are right, and every test is asked
at the 5 % level. Then from other probabilities, to see what each test finds. Last, what the
debiased ECE is worth.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

import calibrant as cal
from experiments import keep, say, table

__all__ = [
    "LEVEL",
    "PREDICTIONS",
    "REPLICATES",
    "TESTS",
    "Draw",
    "Random",
    "bias",
    "false_positives",
    "page",
    "power",
    "rejections",
    "stated",
]

Array = NDArray[np.float64]
Random = np.random.Generator

SIZES = (50, 500, 5000)
LEVEL = 0.05
#: (replicates + 1)·5 % is whole, so that the level of a redrawing test is 5 % and not less
REPLICATES = 199
#: simulations of power and bias, which need fewer
FEWER = 500


class Draw(NamedTuple):
    """Predictions, and importance weights where there are any."""

    p: Array
    weight: Array | None = None


PREDICTIONS: dict[str, Callable[[int, Random], Draw]] = {
    "uniform": lambda n, r: Draw(r.random(n)),
    "rare": lambda n, r: Draw(r.beta(0.5, 24.5, n)),
    "ties": lambda n, r: Draw(r.integers(1, 10, n) / 10),
    "weights": lambda n, r: Draw(r.random(n), r.lognormal(0.0, 1.0, n)),
}
ABOUT = {
    "uniform": "p uniform on [0, 1]",
    "rare": "p from Beta(½, 24½), mean 2 %",
    "ties": "nine distinct predictions .1 to .9",
    "weights": "p uniform, importance weights e^Z, Z standard normal",
}

#: what the labels are drawn from, instead of p
DEPARTURES: dict[str, Callable[[Array], Array]] = {
    "too low": lambda p: expit(logit(p) + 0.3),
    "too extreme": lambda p: expit(0.75 * logit(p)),
    "too timid": lambda p: expit(1.33 * logit(p)),
    "wave": lambda p: np.clip(p + 0.08 * np.sin(4 * np.pi * p), 0.0, 1.0),
    "one decile": lambda p: np.where((p > 0.8) & (p < 0.9), p - 0.2, p),
}
DEPARTED = {
    "too low": "log-odds of the truth .3 above those of p",
    "too extreme": "true log-odds ¾ of those of p",
    "too timid": "true log-odds 4/3 of those of p",
    "wave": "truth p + .08 sin 4πp",
    "one decile": "truth p − .2 for .8 < p < .9",
}


def _pair(y: Array, draw: Draw, random: Random) -> tuple[Array, Array]:
    """Two predictions as good as each other: the truth, moved up or down at random in each row."""
    move = 0.5 * random.choice([-1.0, 1.0], len(y))
    z = logit(np.clip(draw.p, 1e-300, 1 - 1e-16))
    return expit(z + move), expit(z - move)


def _difference(loss: str) -> Callable[..., float]:
    def test(y: Array, draw: Draw, random: Random, **options: Any) -> float:
        return float(
            cal.metrics.loss_difference(y, *_pair(y, draw, random), loss=loss, **options).p_value
        )

    return test


#: the p-value of each test
TESTS: dict[str, Callable[..., float]] = {
    "ece_test, width": lambda y, d, r, **o: (
        cal.metrics.ece_test(y, d.p, replicates=REPLICATES, random_state=r, **o).p_value
    ),
    "ece_test, mass": lambda y, d, r, **o: (
        cal.metrics.ece_test(
            y, d.p, binning="mass", replicates=REPLICATES, random_state=r, **o
        ).p_value
    ),
    "skce_test": lambda y, d, r, **o: (
        cal.metrics.skce_test(y, d.p, replicates=REPLICATES, random_state=r, **o).p_value
    ),
    "ecce by the limit, range": lambda y, d, r, **o: (
        cal.metrics.ecce(y, d.p, replicates=None, **o).range_p_value
    ),
    "ecce by the limit, maximum": lambda y, d, r, **o: (
        cal.metrics.ecce(y, d.p, replicates=None, **o).maximum_p_value
    ),
    "spiegelhalter": lambda y, d, r, **o: cal.metrics.spiegelhalter(y, d.p, **o).p_value,
    "hosmer_lemeshow by χ², C": lambda y, d, r, **o: (
        cal.metrics.hosmer_lemeshow(y, d.p, replicates=None, **o).p_value
    ),
    "hosmer_lemeshow by χ², H": lambda y, d, r, **o: (
        cal.metrics.hosmer_lemeshow(y, d.p, binning="width", replicates=None, **o).p_value
    ),
    "loss_difference, log": _difference("log"),
    "loss_difference, brier": _difference("brier"),
}
#: between which rates the false alarms at the 5 % level are stated to lie, from 50 rows on
STATED = {
    "ece_test": (0.035, 0.05),
    "skce_test": (0.04, 0.05),
    "ecce by the limit": (0.015, 0.055),
    "spiegelhalter": (0.045, 0.06),
    "hosmer_lemeshow by χ²": (0.04, 0.075),
    "loss_difference": (0.04, 0.07),
}
#: the same for rare positives, where it differs
STATED_RARE = {"hosmer_lemeshow by χ²": (0.04, 0.12), "loss_difference": (0.015, 0.055)}
#: those that ask whether p is right
OF_CALIBRATION = {
    name: test for name, test in TESTS.items() if not name.startswith("loss_difference")
}


def stated(name: str, kind: str) -> tuple[float, float]:
    """The rates between which a test's false alarms are stated to lie."""
    test = name.split(",", maxsplit=1)[0]
    return (STATED_RARE if kind == "rare" else {}).get(test, STATED[test])


def rejections(
    tests: Mapping[str, Callable[..., float]],
    draw: Callable[[int, Random], Draw],
    truth: Callable[[Array], Array],
    n: int,
    times: int,
    seed: int,
) -> dict[str, float]:
    """How often each test says no at the 5 % level."""
    random = np.random.default_rng([seed, n])
    found = dict.fromkeys(tests, 0)
    for _ in range(times):
        data = draw(n, random)
        y = (random.random(n) < truth(data.p)).astype(int)
        weighted = {"sample_weight": data.weight, "weights": "importance"}
        options: dict[str, Any] = {} if data.weight is None else weighted
        for name, test in tests.items():
            found[name] += test(y, data, random, **options) <= LEVEL * (1 + 1e-9)
    return {name: count / times for name, count in found.items()}


def false_positives(
    times: int, sizes: tuple[int, ...] = SIZES, seed: int = 0
) -> dict[tuple[str, int], dict[str, float]]:
    """Per kind of prediction and number of rows: the rate of false alarms of each test."""
    return {
        (kind, n): rejections(TESTS, draw, lambda p: p, n, times, seed)
        for kind, draw in PREDICTIONS.items()
        for n in sizes
    }


def power(
    times: int, sizes: tuple[int, ...] = (500, 5000), seed: int = 1
) -> dict[tuple[str, int], dict[str, float]]:
    """Per departure and number of rows: how often each test finds it."""
    uniform = PREDICTIONS["uniform"]
    return {
        (name, n): rejections(OF_CALIBRATION, uniform, truth, n, times, seed)
        for name, truth in DEPARTURES.items()
        for n in sizes
    }


# --- the debiased ECE ---------------------------------------------------------------------------

#: estimates of the ECE of the truth
ESTIMATES = (
    "ece",
    "ece_test(…).debiased",
    "ece(debias=True)",
    "ece − expected",
    'ece(bins="auto")',
    "smooth_ece",
)
#: estimates of the root mean square
ROOTS = ("ece(norm=2)", "ece(norm=2, debias=True)")


class Bias(NamedTuple):
    """Of estimates of the ECE, and of the root mean square, for one departure and one n."""

    departure: str
    n: int
    true: tuple[float, float]
    bias: Array
    rmse: Array


def bias(times: int, sizes: tuple[int, ...] = SIZES[1:], seed: int = 2) -> list[Bias]:
    """Per departure and number of rows: the true errors, and bias and root mean squared error."""
    found = []
    fine = (np.arange(1_000_000) + 0.5) / 1_000_000
    for name, truth in {"none": lambda p: p, **DEPARTURES}.items():
        gap = np.add.reduceat(truth(fine) - fine, np.arange(0, 1_000_000, 100_000)) / 100_000
        true = float(np.abs(gap).mean()), float(np.sqrt((gap**2).mean()))
        each = np.repeat(true, (len(ESTIMATES), len(ROOTS)))
        for n in sizes:
            random = np.random.default_rng([seed, n])
            off = np.array([_estimates(n, truth, random) for _ in range(times)]) - each
            rmse = np.sqrt((off**2).mean(axis=0))
            found.append(Bias(name, n, true, off.mean(axis=0), rmse))
    return found


def _estimates(n: int, truth: Callable[[Array], Array], random: Random) -> tuple[float, ...]:
    p = random.random(n)
    y = (random.random(n) < truth(p)).astype(int)
    test = cal.metrics.ece_test(y, p, replicates=REPLICATES, random_state=random)
    return (
        test.value,
        test.debiased,
        cal.metrics.ece(y, p, debias=True),
        test.value - test.expected,
        cal.metrics.ece(y, p, bins="auto"),
        cal.metrics.smooth_ece(y, p).value,
        cal.metrics.ece(y, p, norm=2),
        cal.metrics.ece(y, p, norm=2, debias=True),
    )


# --- the page -----------------------------------------------------------------------------------


def _rates(rates: dict[tuple[str, int], dict[str, float]]) -> str:
    names = list(next(iter(rates.values())))
    columns = ("test", *(f"{kind}, n = {n:,}" for kind, n in rates))
    rows = [(f"`{name}`", *(f"{100 * r[name]:.1f}" for r in rates.values())) for name in names]
    return table(columns, rows)


def _statements() -> str:
    spans = (
        (f"`{test}`", *("{:.1f} to {:.1f}".format(*(100 * end for end in span)) for span in both))
        for test, both in ((t, (stated(t, ""), stated(t, "rare"))) for t in STATED)
    )
    return table(("test", "in general", "rare positives"), spans)


def _biases(found: list[Bias]) -> str:
    at = len(ESTIMATES)
    parts = []
    for title, names, which, part in (
        ("true ECE", ESTIMATES, 0, slice(at)),
        ("true root mean square", ROOTS, 1, slice(at, None)),
    ):
        rows = [
            (
                one.departure,
                f"{one.n:,}",
                f"{one.true[which]:.4f}",
                *map("{:+.4f} ({:.4f})".format, one.bias[part], one.rmse[part]),
            )
            for one in found
        ]
        parts.append(table(("departure", "n", title, *names), rows))
    return "\n\n".join(parts)


def page(times: int, minutes: float, wrong: Any, found: Any, biased: Any) -> str:
    """The study as a page."""
    parts = [HEADING.format(times=f"{times:,}", noise=100 * math.sqrt(0.05 * 0.95 / times))]
    parts.append("\n".join(f"- *{name}*: {text}" for name, text in ABOUT.items()))
    for kind in PREDICTIONS:
        part = {key: rates for key, rates in wrong.items() if key[0] == kind}
        parts.append(f"## False alarms, {kind}\n\n{_rates(part)}")
    parts.append(f"## Stated\n\n{STATED_TEXT}\n\n{_statements()}")
    parts.append(f"## What is found\n\n{FOUND_TEXT.format(times=FEWER)}")
    parts.append("\n".join(f"- *{name}*: {text}" for name, text in DEPARTED.items()))
    for n in sorted({n for _, n in found}):
        part = {key: rates for key, rates in found.items() if key[1] == n}
        parts.append(f"### n = {n:,}\n\n{_rates(part)}")
    parts.append(f"## The debiased ECE\n\n{DEBIASED}\n\n{_biases(biased)}")
    parts.append(
        f"Made by `python -m experiments.false_positives`, which took {minutes:.0f} minutes."
    )
    return "\n\n".join(parts)


HEADING = """# False alarms of the tests of calibration

Percentage of {times} simulations in which a test rejects at the 5 % level although the predictions
are right; chance alone moves a figure by ±{noise:.1f} (one standard deviation). For
`loss_difference` the two predictions are the truth, moved on the logit scale by +½ and −½ or by −½
and +½ at random in each row, so that both have the same expected loss. `ece_test` redraws 199
times, and so does `skce_test`. *By the limit* and *by χ²*: with `replicates=None`; what redrawing
does is in [calibration_tests.md](calibration_tests.md)."""

STATED_TEXT = """Between these percentages the false alarms are stated to lie from 50 rows on, for
predictions like those above; a slow test holds every case above to them."""

FOUND_TEXT = (
    "Percentage of {times} simulations in which a test rejects at the 5 % level, p uniform."
)

DEBIASED = """Bias and, in brackets, root mean squared error of estimates of the ECE of the truth
(10 bins of equal width, p uniform, 500 simulations). `ece(debias=True)` is the correction of Kumar,
Liang and Ma (2019). *ece − expected*: the ECE minus its mean under calibration. `bins="auto"` takes
bins of its own, and `smooth_ece` none: they estimate other quantities, which differ little from
this one, and are there for comparison. Then the same for the root mean square of the gaps."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100 simulations, nothing kept")
    parser.add_argument("--times", type=int, default=2000, help="simulations (default 2000)")
    chosen = parser.parse_args()
    times = 100 if chosen.quick else chosen.times
    begin = time.monotonic()
    results = []
    for what, study in (("false alarms", false_positives), ("power", power), ("bias", bias)):
        results.append(study(times if study is false_positives else min(times, FEWER)))
        say(f"{what}: {(time.monotonic() - begin) / 60:.1f} minutes")
    text = page(times, (time.monotonic() - begin) / 60, *results)
    if chosen.quick:
        say(text)
    else:
        keep("false_positives.md", text)


if __name__ == "__main__":
    main()
