"""Draw the documentation's pictures anew, from simulated data: python docs/make_pictures.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import calibrant as cal

PICTURES = Path(__file__).parent / "pictures"


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
    return {
        "reliability": cal.reliability_diagram(
            y[test], platt.calibrate(p[test]), raw=p[test], fitted_map=platt
        ),
        "map": cal.map_diagram(isotonic, title="Isotonic regression"),
    }


def few_rows() -> dict[str, object]:
    """The same kind of model, well calibrated, with too few rows to tell."""
    y, p = simulate(50, seed=3)
    return {"few_rows": cal.reliability_diagram(y, p, title="50 rows")}


def rare_events() -> dict[str, object]:
    """Predictions that are all far below one half."""
    random = np.random.default_rng(5)
    p = random.beta(1.0, 300.0, 200_000)
    y = (random.random(len(p)) < p).astype(int)
    return {"rare": cal.reliability_diagram(y, p, kind="mass", title="Rare events, equal mass")}


def margins() -> dict[str, object]:
    """Scores that are margins: shown through σ, the map in a panel of its own."""
    y, p = simulate(2000, seed=7)
    z = 1.7 * np.log(p / (1 - p)) - 1.0
    fit, test = slice(0, 1000), slice(1000, None)
    isotonic = cal.Isotonic().fit(z[fit], y[fit])
    q = isotonic.calibrate(z[test])
    return {"margins": cal.reliability_diagram(y[test], q, raw=z[test], fitted_map=isotonic)}


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    for draw in (before_and_after, few_rows, rare_events, margins):
        for name, figure in draw().items():
            # without the version of matplotlib, an unchanged picture stays the same file
            figure.savefig(PICTURES / f"{name}.png", metadata={"Software": None})


if __name__ == "__main__":
    main()
