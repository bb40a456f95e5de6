"""The reference pages: their figures are those of the studies."""

from __future__ import annotations


def test_levels_of_groups_are_those_of_the_study(root):
    """Every line of both tables of the study is on the page."""
    page = (root / "docs" / "reference" / "tests.md").read_text(encoding="utf-8")
    study = root / "experiments" / "results" / "group_levels.md"
    told = [line for line in study.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    assert len(told) == 2 + 6 + 2 + 3
    section = page.partition("## Groups of rows\n")[2].partition("\n## ")[0].splitlines()
    assert [line for line in section if line[:1] == "|"] == told
