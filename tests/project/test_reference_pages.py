"""The reference pages: their figures are those of the studies."""

from __future__ import annotations

import re


def columns(text: str) -> list[list[float]]:
    """The figures in the rows of tables, a list for each row."""
    rows = [line.split("|")[1:-1] for line in text.splitlines() if re.match(r"\| [\d,]+ \|", line)]
    return [[float(c) for c in row if re.fullmatch(r" \d+\.\d ", c)] for row in rows]


def test_levels_of_groups_are_those_of_the_study(root):
    """The ranges that the page tells hold all figures of both tables of the study."""
    page = (root / "docs" / "reference" / "tests.md").read_text(encoding="utf-8")
    study = (root / "experiments" / "results" / "group_levels.md").read_text(encoding="utf-8")
    alarms, intervals = (columns(part) for part in study.split("## Intervals"))
    assert (len(alarms), len(intervals)) == (6, 3)
    low, high = min(map(min, alarms)), max(map(max, alarms))
    assert f"in {low} to {high} % of simulations" in page
    low, high = min(map(min, intervals)), max(map(max, intervals))
    assert f"in {low:.0f} to {high:.0f} %" in page


def test_what_tests_find_is_what_the_study_found(root):
    """Each figure for 500 rows, the middle one of three."""
    page = (root / "docs" / "reference" / "tests.md").read_text(encoding="utf-8")
    study = root / "experiments" / "results" / "calibration_tests.md"
    found = study.read_text(encoding="utf-8").partition("## What they find")[2]
    told = page.partition("## What they find")[2].partition("\n## ")[0]
    for name in ("calibration_test", "cox", "spiegelhalter", "ecce", "hosmer_lemeshow"):
        (line,) = re.findall(rf"^\| `{name}` \| .*$", found, flags=re.MULTILINE)
        middle = [cell.split(" / ")[1] for cell in line.split(" | ")[1:]]
        assert f"| `{name}` | {' | '.join(middle)} |" in told
