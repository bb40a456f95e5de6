"""docs/howto/llm.md runs as it stands, prints what it shows, and quotes only what it prints."""

from __future__ import annotations

import re

import pytest

#: a block of code, and the block of what it prints, if there is one
STEP = re.compile(r"```python\n(.*?)```\n(?:\n```\n(.*?)```\n)?", flags=re.DOTALL)


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs" / "howto" / "llm.md").read_text(encoding="utf-8")


def test_figures_in_the_text_are_printed(page):
    printed = set(re.findall(r"\d+\.\d+", " ".join(shown for _, shown in STEP.findall(page))))
    quoted = set(re.findall(r"\d+\.\d+", STEP.sub("", page)))
    assert len(quoted) > 15
    assert quoted <= printed
