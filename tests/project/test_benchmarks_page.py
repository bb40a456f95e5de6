"""docs/evidence/benchmarks.md quotes the tables that it links to."""

from __future__ import annotations

import re

NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?"
LINK = r"\]\((\.\./\.\./benchmarks/results/\w+\.md)\)"


def quotations(text):
    """The links of each row of a table and of each paragraph, and the figures beside them."""
    for block in re.sub(r"(?s)```.*?```", "", text).split("\n\n"):
        rows = block.splitlines()[2:] if block.startswith("|") else [block]
        for row in rows:
            links = re.findall(LINK, row)
            words = re.sub(r"\[[^]]*\]\([^)]*\)|`[^`]*`", "", row.partition("|")[2] or row)
            if row.startswith("|"):  # not the first cell, which says what was measured
                figures = re.findall(NUMBER, "|".join(words.split("|")[1:]))
            else:
                figures = [n for n in re.findall(NUMBER, words) if "." in n]
            yield links, figures


def test_figures_are_those_of_the_tables(root):
    page = root / "docs" / "evidence" / "benchmarks.md"
    found = 0
    for links, figures in quotations(page.read_text(encoding="utf-8")):
        tables = "".join((page.parent / link).read_text(encoding="utf-8") for link in links)
        known = set(re.findall(NUMBER, tables))
        assert set(figures) <= known, links
        found += len(figures)
    assert found > 80


def test_every_measurement_with_a_table_is_named(root):
    text = (root / "docs" / "evidence" / "benchmarks.md").read_text(encoding="utf-8")
    names = {path.name for path in (root / "benchmarks" / "results").glob("*.md")}
    linked = {link.rpartition("/")[2] for link in re.findall(LINK, text)}
    assert linked == {name for name in names if not name.startswith(("arena", "peers"))}
