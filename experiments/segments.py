"""What maps of segments gain and cost: ``python -m experiments.segments [--sets N]``.

Simulated segments of lognormal size whose logits differ by a normal offset, and in some settings by
slope; each way to calibrate is judged by its log loss beyond that of the true probabilities.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import calibrant as cal
from experiments import keep, table

Array = NDArray[np.float64]
Index = NDArray[np.intp]

SEGMENTS = 100
#: rows of each segment that judge
JUDGES = 200


@dataclass(frozen=True)
class Setting:
    """Median rows of a segment, deviation of offsets and log slopes, middle rate, shape."""

    rows: int
    offset: float
    slope: float
    rate: float
    bent: bool = False


SETTINGS = {
    "alike, 100 rows": Setting(100, 0.0, 0.0, 0.2),
    "offsets, 100 rows": Setting(100, 0.5, 0.0, 0.2),
    "offsets and slopes, 400 rows": Setting(400, 0.5, 0.2, 0.2),
    "the same, rare": Setting(400, 0.5, 0.2, 0.03),
    "alike, rare, bent": Setting(400, 0.0, 0.0, 0.03, bent=True),
    "offsets and slopes, 400 rows, bent": Setting(400, 0.5, 0.2, 0.2, bent=True),
    "offsets, 1,500 rows, rare, bent": Setting(1500, 0.3, 0.0, 0.03, bent=True),
}
WAYS = {
    "each alone": cal.SegmentedCalibrator(shrinkage=0),
    "`cv`": cal.SegmentedCalibrator(),
    "Platt, each alone": cal.SegmentedCalibrator(cal.Platt(), shrinkage=0),
    "Platt, `cv`": cal.SegmentedCalibrator(cal.Platt()),
    "Isotonic, `cv`": cal.SegmentedCalibrator(
        cal.Isotonic(interpolation="centred", smoothing="laplace")
    ),
}


class World:
    """Segments with their true maps, from which rows are drawn."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting, self.rng = setting, np.random.default_rng(seed)
        sizes = np.exp(self.rng.normal(np.log(setting.rows), 1.0, SEGMENTS)).astype(int)
        self.sizes = np.maximum(sizes, 4)
        self.offset = self.rng.normal(0.0, setting.offset, SEGMENTS)
        self.slope = np.exp(self.rng.normal(0.0, setting.slope, SEGMENTS))

    def draw(self, sizes: Index) -> tuple[Array, NDArray[np.bool_], Index, Array]:
        """Scores, labels, segments and true probabilities."""
        g = np.repeat(np.arange(SEGMENTS), sizes)
        middle = np.log(self.setting.rate / (1.0 - self.setting.rate))
        apart = self.rng.normal(0.0, 1.5, len(g))
        true = np.where(apart < 0.0, 0.5 * apart, 1.8 * apart) if self.setting.bent else apart
        p = sigma(middle + self.offset[g] + self.slope[g] * true)
        return sigma(1.3 * (middle + apart) + 0.3), self.rng.random(len(g)) < p, g, p


def sigma(z: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-z)))


def beyond(truth: Array, p: Array) -> float:
    """Mean log loss beyond that of the truth, in units of 10⁻⁴."""
    p = np.clip(p, 1e-15, 1.0 - 1e-15)
    loss = truth * np.log(truth / p) + (1.0 - truth) * np.log((1.0 - truth) / (1.0 - p))
    return 1e4 * float(loss.mean())


def trial(setting: Setting, seed: int) -> list[float]:
    """The scores as they are, one map for all rows, and each way in turn."""
    world = World(setting, seed)
    s, y, g, _ = world.draw(world.sizes)
    new, _, where, truth = world.draw(np.full(SEGMENTS, JUDGES))
    common = cal.BLS().fit(s, y)
    found = [beyond(truth, new), beyond(truth, common.calibrate(new))]
    for way in WAYS.values():
        fitted = way.fit(s, y, segments=g)
        found.append(beyond(truth, fitted.calibrate(new, where)))
    return found


def choices(setting: Setting, seed: int) -> tuple[list[float], bool]:
    """Other rules than the default's, judged; and whether `cv` saw segments differ."""
    world = World(setting, seed)
    s, y, g, _ = world.draw(world.sizes)
    new, _, where, truth = world.draw(np.full(SEGMENTS, JUDGES))
    chosen = cal.SegmentedCalibrator().fit(s, y, segments=g)
    least = min(chosen.path_, key=lambda step: step.log_loss).shrinkage
    ways = [cal.SegmentedCalibrator(min_events=events) for events in (3, 10)]
    fitted = [way.fit(s, y, segments=g) for way in ways]
    found = [chosen.calibrate(new, where), chosen.map_.default(new)]
    if np.isfinite(least):
        found[1] = (
            cal.SegmentedCalibrator(shrinkage=least).fit(s, y, segments=g).calibrate(new, where)
        )
    found += [way.calibrate(new, where) for way in fitted]
    return [beyond(truth, p) for p in found], bool(np.isfinite(chosen.shrinkage_))


def choice_table(sets: int) -> str:
    """Means of `choices`, and how often segments were seen to differ."""
    rows = []
    for name, setting in SETTINGS.items():
        if setting.bent:
            continue
        losses, differ = zip(*(choices(setting, seed) for seed in range(sets)), strict=True)
        often = f"{sum(differ)} of {sets}"
        rows.append([name, *(f"{value:.1f}" for value in np.mean(losses, axis=0)), often])
    head = ["segments", "`cv`", "κ of least log loss", "`min_events=3`", "`min_events=10`"]
    return table([*head, "`cv`: κ < ∞"], rows)


def page(sets: int) -> str:
    """The table of all settings, and that of other choices."""
    rows = []
    for name, setting in SETTINGS.items():
        means = np.mean([trial(setting, seed) for seed in range(sets)], axis=0)
        rows.append([name, *(f"{value:.1f}" for value in means)])
    head = ["segments", "scores", "one map (BLS)", *WAYS]
    return f"""# Maps of segments

Log loss beyond that of the true probabilities, in 10⁻⁴ (less is better), mean of {sets} simulated
sets of {SEGMENTS} segments that count the same. Made by `python -m experiments.segments`.

{table(head, rows)}

Other choices than those of `cv`, judged in the same way, and in how many of the sets segments were
seen to differ.

{choice_table(sets)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.segments", description=__doc__)
    parser.add_argument("--sets", type=int, default=10, help="sets of each kind (default 10)")
    keep("segments.md", page(parser.parse_args().sets))


if __name__ == "__main__":
    main()
