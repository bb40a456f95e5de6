"""Draw the documentation's pictures anew, from simulated data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
from sklearn.datasets import make_classification

import calibrant as cal

PICTURES = Path(__file__).parent.parent / "pictures"


def simulate(n: int, seed: int, sharpness: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Labels and probabilities: right for sharpness 1, overconfident above."""
    random = np.random.default_rng(seed)
    z = random.normal(-0.5, 1.8, n)
    y = (random.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return y, 1 / (1 + np.exp(-sharpness * z))


def before_and_after() -> dict[str, object]:
    """An overconfident model, calibrated on one half of the data and judged on the other."""
    y, p = simulate(6000, seed=1, sharpness=2.5)
    fit, test = slice(0, 3000), slice(3000, None)
    platt = cal.Platt().fit(p[fit], y[fit])
    isotonic = cal.Isotonic().fit(p[fit], y[fit])
    elite = cal.ELiTE().fit(p[fit], y[fit])
    venn = cal.VennAbers().fit(p[:600], y[:600])
    predictions = {
        "raw": p[test],
        "Platt": platt.calibrate(p[test]),
        "ELiTE": elite.calibrate(p[test]),
    }
    return {
        "reliability": cal.reliability_diagram(
            y[test], predictions["Platt"], raw=p[test], fitted_map=platt
        ),
        "corp": cal.reliability_diagram(
            y[test], predictions["Platt"], raw=p[test], curve="isotonic"
        ),
        "smooth": cal.reliability_diagram(y[test], p[test], curve="smooth", band="confidence"),
        "several": cal.reliability_diagram(y[test], predictions, curve="smooth"),
        "map": cal.diagrams.map_diagram(isotonic, title="Isotonic regression"),
        "map_odds": cal.diagrams.map_diagram(
            venn, axes="logit", lo=0.001, hi=0.999, title="Venn–Abers on 600 rows, log-odds axes"
        ),
    }


def segments() -> dict[str, object]:
    """One map for all regions: right on the whole, wrong in two of them."""
    random = np.random.default_rng(17)
    y, p = simulate(12_000, seed=17, sharpness=2.0)
    region = np.array(["north", "south", "west"])[random.integers(0, 3, len(y))]
    z = np.log(p / (1 - p)) / 2 + np.select([region == "north", region == "west"], [0.9, -0.9])
    y = (random.random(len(y)) < 1 / (1 + np.exp(-z))).astype(int)
    platt = cal.Platt().fit(p[:6000], y[:6000])
    y, p, region = y[6000:], p[6000:], region[6000:]
    predictions = {"raw": p, "Platt": platt.calibrate(p)}
    return {"segments": cal.reliability_diagram(y, predictions, segments=region, band=None)}


def belt() -> dict[str, object]:
    """An overconfident model of 1,000 rows, with its calibration belt."""
    y, p = simulate(1000, seed=1, sharpness=1.4)
    return {"belt": cal.reliability_diagram(y, p, curve="belt")}


def few_rows() -> dict[str, object]:
    """The same kind of model, well calibrated, with too few rows to tell."""
    y, p = simulate(50, seed=3)
    return {"few_rows": cal.reliability_diagram(y, p, title="50 rows")}


def rare_events() -> dict[str, object]:
    """Predictions that are all far below one half."""
    random = np.random.default_rng(5)
    p = random.beta(1.0, 300.0, 200_000)
    y = (random.random(len(p)) < p).astype(int)
    wide = random.beta(0.6, 200.0, 200_000)
    hit = (random.random(len(wide)) < 0.6 * wide).astype(int)
    return {
        "rare": cal.reliability_diagram(y, p, title="Rare events"),
        "rare_odds": cal.reliability_diagram(hit, wide, curve="isotonic", axes="logit"),
    }


def margins() -> dict[str, object]:
    """Scores that are margins: shown through σ, the map in a panel of its own."""
    y, p = simulate(2000, seed=7)
    z = 1.7 * np.log(p / (1 - p)) - 1.0
    fit, test = slice(0, 1000), slice(1000, None)
    isotonic = cal.Isotonic().fit(z[fit], y[fit])
    q = isotonic.calibrate(z[test])
    return {"margins": cal.reliability_diagram(y[test], q, raw=z[test], fitted_map=isotonic)}


def boosting() -> dict[str, object]:
    """Boosted trees over their steps, and at the last one before and after calibration."""
    X, y = make_classification(20_000, n_informative=8, flip_y=0.05, class_sep=0.8, random_state=1)
    model = cal.boosting.AdaBoost("tree", max_depth=4, n_estimators=1024, random_state=0)
    model.fit(X[:2000], y[:2000])
    X, y = X[2000:], y[2000:]
    f = model.raw_score(X)
    fit, test = slice(0, 4000), slice(4000, None)
    platt = cal.Platt(scale="raw").fit(f[fit], y[fit])
    isotonic = cal.Isotonic().fit(f[fit], y[fit])
    panels = cal.diagrams.reliability_panels(
        y[test],
        {
            "raw, Platt's sigmoid": f[test],
            "raw, isotonic steps": f[test],
            "after Platt": platt.calibrate(f[test]),
            "after isotonic": isotonic.calibrate(f[test]),
        },
        maps={"raw, Platt's sigmoid": platt, "raw, isotonic steps": isotonic},
    )
    return {
        "boosting": cal.diagrams.panel_diagram(cal.diagrams.boosting_panels(model, X, y)),
        "panels": cal.diagrams.panel_diagram(panels),
    }


def classes() -> dict[str, object]:
    """Five classes: too sure of all of them, and one is given too little."""
    random = np.random.default_rng(13)
    z = random.normal(0, 1.5, (20_000, 5))
    true = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    codes = (true.cumsum(axis=1) > random.random((len(z), 1))).argmax(axis=1)
    z = 1.6 * z - np.array([0.0, 0.0, 0.0, 0.0, 1.8])
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    names = np.array(["ant", "bee", "cat", "dog", "eel"])
    return {"classes": cal.diagrams.class_diagram(names[codes], p)}


def learning() -> dict[str, object]:
    """How many rows Platt scaling and isotonic regression need for a timid model."""
    y, p = simulate(20_000, seed=11, sharpness=0.35)
    curve = cal.learning_curve([cal.Platt(), cal.Isotonic()], p, y, random_state=0)
    return {"learning": cal.diagrams.learning_diagram(curve)}


def monitor() -> dict[str, object]:
    """A model that says too little since day 41: the example of the page."""
    random = np.random.default_rng(7)
    watch = cal.Monitor(alpha=0.05)
    for day in range(1, 61):
        p = random.beta(1, 5, 200)
        odds = p / (1 - p) * (1.4 if day > 40 else 1.0)
        watch.update(random.random(200) < odds / (1 + odds), p, when=f"day {day}")
    return {"monitor": cal.diagrams.monitor_diagram(watch, title="A model of 60 days")}


def decisions() -> dict[str, object]:
    """An overconfident model before and after calibration: what acting on either is worth."""
    y, p = simulate(6000, seed=1, sharpness=2.5)
    platt = cal.Platt().fit(p[:3000], y[:3000])
    y, p = y[3000:], p[3000:]
    models = {"model": p, "after Platt": platt.calibrate(p)}
    curve = cal.diagrams.decision_curve(y, models, thresholds=np.arange(2, 81) / 100)
    return {"decision": cal.diagrams.decision_diagram(curve)}


def groups() -> dict[str, object]:
    """A model that is right on average, and wrong for the old in one country and on one channel."""
    random = np.random.default_rng(3)
    n = 6000
    country = random.choice(["de", "fr", "it"], n)
    channel = random.choice(["shop", "web"], n, p=[0.8, 0.2])
    age = random.integers(18, 90, n)
    _, p = simulate(n, seed=2)
    odds = p / (1 - p) * np.where((country == "it") & (age > 60), 0.35, 1.0)
    odds *= np.where(channel == "web", 1.7, 1.0)
    y = random.random(n) < odds / (1 + odds)
    columns = {"country": country, "age": age, "channel": channel}
    found = cal.metrics.multicalibration(y, p, features=pandas.DataFrame(columns))
    return {"groups": cal.diagrams.group_diagram(found, title="Where is it wrong?")}


def grades() -> dict[str, object]:
    """Grades of risk whose promises are too low: the example of the page."""
    random = np.random.default_rng(3)
    scores = random.normal(size=8000)
    default = random.random(8000) < 1 / (1 + np.exp(-1.2 * scores + 3))
    calibrator = cal.BLS().fit(scores[:4000], default[:4000])
    scale = cal.monitor.MasterScale.of(calibrator, boundaries=[0.01, 0.03, 0.1, 0.25])
    checks = scale.check(default[4000:], 0.85 * calibrator.calibrate(scores[4000:]))
    return {"grades": cal.diagrams.grade_diagram(checks)}


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    known = (before_and_after, belt, few_rows, rare_events, margins, learning, classes, boosting)
    for draw in (*known, segments, monitor, decisions, groups, grades):
        for name, figure in draw().items():
            # without the version of matplotlib, an unchanged picture stays the same file
            figure.savefig(PICTURES / f"{name}.png", metadata={"Software": None})


if __name__ == "__main__":
    main()
