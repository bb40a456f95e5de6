"""What the README says works as it stands."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest


def blocks(root, language):
    text = (root / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_python_examples_run(root, tmp_path, monkeypatch):
    from sklearn.naive_bayes import GaussianNB

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)) + rng.normal(size=(600, 1))
    y = (rng.random(600) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    p = GaussianNB().fit(X, y).predict_proba(X)[:, 1]
    names = {
        "GaussianNB": GaussianNB,
        "X": X,
        "y": y,
        "scores": p,
        "new_scores": p[:5],
        "y_test": y,
        "test_scores": p,
    }
    for code in blocks(root, "python"):
        exec(code, names)
    assert (tmp_path / "diagram.png").stat().st_size > 10_000
    assert (tmp_path / "calibrator.json").exists()


@pytest.mark.full
def test_command_lines_run(root, tmp_path):
    rng = np.random.default_rng(0)
    lines = ["id,score,outcome"]
    for i, s in enumerate(rng.random(400)):
        lines.append(f"{i:05d},{s},{'bad' if rng.random() < s**2 else 'good'}")
    (tmp_path / "scores.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "new.csv").write_text("\n".join(lines[:50]) + "\n")
    commands = [
        line
        for block in blocks(root, "sh")
        for line in block.splitlines()
        if line.startswith("calibrant ")
    ]
    assert len(commands) == 9
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "calibrant.cli", *command.split()[1:]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)
    assert (tmp_path / "calibrated.csv").read_text().splitlines()[1].startswith("00000,")


def test_links_lead_somewhere(root):
    pages = [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"
