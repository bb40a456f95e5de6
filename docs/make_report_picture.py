"""The picture of the page on reports: ``python docs/make_report_picture.py``. Needs chromium."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import calibrant as cal

PICTURE = Path(__file__).parent / "pictures" / "report.png"
#: pixels of the page that are shown, and of the picture
WIDTH, HEIGHT, SHOWN = 1240, 1720, 900


def simulate(n: int = 8000, seed: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An overconfident model of who leaves; in the South people leave less often."""
    random = np.random.default_rng(seed)
    z = random.normal(-1.0, 1.6, n)
    region = random.choice(["North", "East", "South"], n, p=[0.5, 0.3, 0.2])
    left = random.random(n) < 1 / (1 + np.exp(-z + 0.5 * (region == "South")))
    return 1 / (1 + np.exp(-2.2 * z - 0.4)), np.where(left, "left", "stayed"), region


def main() -> None:
    scores, y, region = simulate()
    methods = [cal.Platt(), cal.Beta(), cal.Isotonic(smoothing="laplace"), cal.Temperature()]
    report = cal.calibration_report(
        scores,
        y,
        calibrator=methods,
        segments=region,
        pos_label="left",
        title="Which customers will leave?",
        label_name="outcome",
        source="simulated",
    )
    with tempfile.TemporaryDirectory() as folder:
        page = report.save(Path(folder) / "report.html")
        shot = Path(folder) / "report.png"
        command = [
            shutil.which("chromium") or "chromium",
            "--headless=new",
            "--no-sandbox",
            "--hide-scrollbars",
            f"--window-size={WIDTH},{HEIGHT}",
            f"--screenshot={shot}",
            page.as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True)
        picture = Image.open(shot).convert("RGB")
        small = picture.resize((SHOWN, round(SHOWN * picture.height / picture.width)), 1)
        small.save(PICTURE, optimize=True)  # a palette would lose some of the colours


if __name__ == "__main__":
    main()
