"""What the README says works as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings

import pytest

from calibrant.errors import AdviceWarning


def blocks(root, language):
    text = (root / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_python_examples_run_as_pasted(root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)
        for code in blocks(root, "python"):
            exec(code, names)
    printed = capsys.readouterr().out
    shown = re.search(r"```\n(A smooth.*?)```", (root / "README.md").read_text(), re.DOTALL)
    assert shown is not None
    assert shown[1] in printed
    assert (tmp_path / "diagram.png").stat().st_size > 10_000
    assert (tmp_path / "calibrator.json").exists()
    assert (tmp_path / "report.html").exists()


@pytest.mark.full
def test_command_lines_run_as_pasted(root, tmp_path):
    folder, commands = tmp_path, 0
    for line in "".join(blocks(root, "sh")).splitlines():
        words = line.partition("#")[0].split()
        if words[:1] == ["cd"]:
            folder = folder / words[1]
        if words[:1] != ["calibrant"]:
            continue
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "calibrant.cli",
                *words[1:],
                *(["--force"] * (words[1] == "demo")),
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (line, done.stderr)
        commands += 1
    assert commands == 5
    assert (folder / "out.csv").read_text().startswith("customer,region,months,score,churned,prob")


def test_links_lead_somewhere(root):
    pages = [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"
