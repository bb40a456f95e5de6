"""Studies behind the defaults, and the papers' tables. Run by hand; only the public API is used."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def say(text: str) -> None:
    """One line (or table) to the person who runs the study."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def keep(name: str, text: str, folder: Path = RESULTS) -> None:
    """Write a result and print it if it is meant for reading."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    if name.endswith(".md"):
        say(text)
