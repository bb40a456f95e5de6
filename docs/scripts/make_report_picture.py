"""The pictures of our pages: ``python docs/scripts/make_report_picture.py``. Needs chromium."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import calibrant as cal
from calibrant.reports.kit import PageValue
from calibrant.reports.monitor_page import MonitorReport
from calibrant.reports.page import Report

PICTURES = Path(__file__).parent.parent / "pictures"
#: pixels across the pages and the pictures
WIDTH, SHOWN = 1240, 900


def simulate(n: int = 8000, seed: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An overconfident model of who leaves; in the South people leave less often."""
    random = np.random.default_rng(seed)
    z = random.normal(-1.0, 1.6, n)
    region = random.choice(["North", "East", "South"], n, p=[0.5, 0.3, 0.2])
    left = random.random(n) < 1 / (1 + np.exp(-z + 0.5 * (region == "South")))
    return 1 / (1 + np.exp(-2.2 * z - 0.4)), np.where(left, "left", "stayed"), region


def calibration() -> Report:
    """The report of a calibration."""
    scores, y, region = simulate()
    methods = [cal.Platt(), cal.Beta(), cal.Isotonic(smoothing="laplace"), cal.Temperature()]
    return cal.calibration_report(
        scores,
        y,
        calibrator=methods,
        segments=region,
        pos_label="left",
        title="Which customers will leave?",
        label_name="outcome",
        source="simulated",
    )


def sixty_days(seed: int = 7) -> MonitorReport:
    """The report of a monitor of 60 days: since the 41st more leave than was said, but for the
    East."""
    random = np.random.default_rng(seed)
    watch = cal.Monitor(by_segment=True, classes=["left", "stayed"], pos_label="left")
    for day in range(1, 61):
        p, region = random.beta(1, 5, 400), random.choice(["North", "East", "South"], 400)
        odds = p / (1 - p) * np.where((day > 40) & (region != "East"), 1.5, 1.0)
        left = np.where(random.random(400) < odds / (1 + odds), "left", "stayed")
        watch.update(left, p, segments=region, when=f"day {day}")
    return cal.monitor_report(watch, title="Which customers will leave?", source="simulated")


def draw(report: PageValue, name: str, height: int) -> None:
    """The top of a page, so many pixels high."""
    with tempfile.TemporaryDirectory() as folder:
        page = report.save(Path(folder) / "page.html")
        shot = Path(folder) / "page.png"
        command = [
            shutil.which("chromium") or "chromium",
            "--headless=new",
            "--no-sandbox",
            "--hide-scrollbars",
            f"--window-size={WIDTH},{height}",
            f"--screenshot={shot}",
            page.as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True)
        picture = Image.open(shot).convert("RGB")
        small = picture.resize((SHOWN, round(SHOWN * picture.height / picture.width)), 1)
        small.save(PICTURES / name, optimize=True)  # a palette would lose some of the colours


def main() -> None:
    draw(calibration(), "report.png", 1720)
    draw(sixty_days(), "monitor_page.png", 1750)


if __name__ == "__main__":
    main()
