"""A year of daily batches: false alarms, and how soon a change is found, by simulation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from benchmarks.harness import add, setting, write_page
from calibrant import Monitor, Platt, ScoreTable
from calibrant.maps import Identity
from calibrant.monitor import check_drift

Array = NDArray[Any]
Day = tuple[Array, Array]
#: takes a batch and says whether there is an alarm
Watcher = Callable[[Array, Array], bool]

DAYS, ROWS, CHANGED = 365, 200, 100
ALPHA = 0.05
#: years that are simulated: of each watcher, and of those that take longest
YEARS, SLOW = 1000, 100
#: rows that a calibrator is fitted to, where it is not the truth itself
FITTED = 20_000

CHANGES: dict[str, Callable[[Array], Array]] = {
    "log-odds + 0.1": lambda p: expit(logit(p) + 0.1),
    "log-odds + 0.3": lambda p: expit(logit(p) + 0.3),
    "log-odds × 0.8": lambda p: expit(0.8 * logit(p)),
    "+ 0.5 in the top tenth": lambda p: np.where(p >= expit(-0.334), expit(logit(p) + 0.5), p),
}


def year(rng: np.random.Generator, change: Callable[[Array], Array] | None = None) -> Iterator[Day]:
    """Labels and probabilities of each day: 18 % are positive; a change comes after day 100."""
    for day in range(DAYS):
        p = expit(rng.normal(-2.0, 1.3, ROWS))
        true = p if change is None or day < CHANGED else change(p)
        yield rng.random(ROWS) < true, p


# --- those who watch ----------------------------------------------------------------------------


def monitor(rng: np.random.Generator) -> Watcher:
    watcher = Monitor(alpha=ALPHA)
    return lambda y, p: watcher.update(y, p).alarm is not None


def monitor_of_fit(least: float) -> Callable[[np.random.Generator], Watcher]:
    """Against a calibrator that was itself learned from rows."""

    def begin(rng: np.random.Generator) -> Watcher:
        p = expit(rng.normal(-2.0, 1.3, FITTED))
        watcher = Monitor(Platt().fit(p, rng.random(FITTED) < p), alpha=ALPHA, least=least)
        return lambda y, p: watcher.update(y, scores=p).alarm is not None

    return begin


def nightly_check(rng: np.random.Generator) -> Watcher:
    def look(y: Array, p: Array) -> bool:
        return check_drift(Identity(), ScoreTable.from_arrays(p, y), level=ALPHA).found

    return look


def probcal_monitor(rng: np.random.Generator) -> Watcher:
    from probcal.monitor import CalibrationMonitor

    watcher = CalibrationMonitor(alpha=ALPHA, plug_in_window=30)
    return lambda y, p: bool(watcher.update(y.astype(int), p).alarm)


def watchers() -> dict[str, tuple[Callable[[np.random.Generator], Watcher], int]]:
    """Those that are installed, and how many years each is given."""
    found: dict[str, tuple[Callable[[np.random.Generator], Watcher], int]] = {
        "Monitor": (monitor, YEARS),
        "Monitor, of Platt fitted to 20,000 rows": (monitor_of_fit(0.0), SLOW),
        "the same, least=0.01": (monitor_of_fit(0.01), SLOW),
        "check_drift every day": (nightly_check, YEARS),
    }
    try:
        import probcal  # noqa: F401
    except ImportError:
        print("probcal is not installed: left out", flush=True)
    else:
        found["probcal's CalibrationMonitor"] = (probcal_monitor, SLOW)
    return found


# --- what is measured ---------------------------------------------------------------------------


def first_alarm(watch: Watcher, days: Iterator[Day]) -> int | None:
    """The number of the day, from 1 on."""
    for number, (y, p) in enumerate(days, start=1):
        if watch(y, p):
            return number
    return None


def false_alarms(
    name: str, begin: Callable[[np.random.Generator], Watcher], years: int
) -> dict[str, object]:
    """In how many years there is at least one alarm though nothing has changed, in per cent."""
    rng = np.random.default_rng([1, *name.encode()])
    found = [first_alarm(begin(rng), year(rng)) for _ in range(years)]
    share = float(np.mean([day is not None for day in found]))
    within = float(np.mean([day is not None and day <= 30 for day in found]))
    return {
        "who watches": name,
        "years": f"{years:,}",
        "alarm within 30 days, %": f"{100 * within:.1f}",
        "alarm within the year, %": f"{100 * share:.1f}",
        "±": f"{100 * (share * (1 - share) / years) ** 0.5:.1f}",
    }


def delays(
    name: str, begin: Callable[[np.random.Generator], Watcher], change: str, years: int
) -> dict[str, object]:
    """How many days after a change the alarm comes."""
    rng = np.random.default_rng([2, *name.encode(), *change.encode()])
    found = [first_alarm(begin(rng), year(rng, CHANGES[change])) for _ in range(years)]
    early = sum(day is not None and day <= CHANGED for day in found)
    days = [
        np.inf if day is None else day - CHANGED for day in found if not (day or 999) <= CHANGED
    ]
    middle, late = (np.quantile(days, share, method="higher") for share in (0.5, 0.9))
    return {
        "change after day 100": change,
        "who watches": name,
        "half found after, days": f"{middle:.0f}",
        "nine tenths": f"{late:.0f}",
        "not found, %": f"{100 * np.mean(np.isinf(days)):.0f}",
        "alarm before, %": f"{100 * early / years:.0f}",
    }


def run(sizes: list[int]) -> None:
    """Measure and write ``results/monitor*.csv`` and ``results/monitor.md``."""
    load = os.getloadavg()[0]
    tables: dict[str, list[dict[str, object]]] = {name: [] for name in HEADINGS}
    for name, (begin, years) in watchers().items():
        add(tables["monitor_alarms"], false_alarms(name, begin, years))
    anytime = {name: begin for name, (begin, _) in watchers().items() if "onitor" in name}
    anytime.pop("Monitor, of Platt fitted to 20,000 rows")
    for change in CHANGES:
        for name, begin in anytime.items():
            add(tables["monitor_delays"], delays(name, begin, change, SLOW))
    made = f"{setting(['calibrant', 'numpy', 'scipy', 'probcal'])}. Load at the start: {load:.1f}."
    write_page("monitor", "A year of daily batches", tables, HEADINGS, made)


HEADINGS = {
    "monitor_alarms": f"""## False alarms

{DAYS} days of {ROWS} rows each, 18 % positive, whose probabilities are right. How often there is at
least one alarm, at {100 * ALPHA:.0f} %.""",
    "monitor_delays": f"""## How soon a change is found

The same, with a change after day {CHANGED}; {SLOW} years each. Days from the change to the
alarm.""",
}


if __name__ == "__main__":
    run([])
