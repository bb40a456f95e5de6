"""Pages of results in Markdown, and the blocks of the documentation that quote them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from experiments import table as as_table
from experiments.papers.cells import Claim, Paper, Table
from experiments.papers.run import journal, results

__all__ = ["blocks", "fill", "page", "render"]

#: <!-- claims --> or <!-- table 1a -->, what stands there, <!-- end -->
BLOCK = re.compile(r"(<!-- (claims|table [^ ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def claims_table(claims: list[Claim]) -> str:
    """What the paper says, its figures and ours, and the verdict."""
    verdicts = {True: "yes", False: "**no**", None: "–"}
    rows = [(c.text, c.published, c.ours, verdicts[c.holds], c.note) for c in claims]
    return as_table(("the paper says", "published", "ours", "holds", "note"), rows)


def how_far(paper: Paper, table: Table, folder: Path) -> str:
    """How much of the full run the page rests on."""
    kept, cells = journal(folder, paper, table), table.cells(False)
    done = len(cells) - len(kept.todo(cells))
    whole = "all" if done == len(cells) else f"{done:,} of"
    return f"*From {whole} {len(cells):,} cells of the full run.*"


def blocks(paper: Paper, folder: Path) -> dict[str, str]:
    """The parts of a page by name: "claims", and "table T" for each table."""
    found = results(folder, paper)
    parts = {"claims": claims_table(paper.claims(found))}
    for table in paper.tables:
        frame = found[table.name]
        parts[f"table {table.name}"] = table.page(frame) if len(frame) else "*Not run yet.*"
    return parts


def page(paper: Paper, folder: Path, parts: dict[str, str]) -> str:
    """Everything about a paper, as Markdown, of the blocks of its results."""
    text = [f"# {paper.title}", paper.notes.strip(), "## What the paper claims", parts["claims"]]
    for table in paper.tables:
        text += [f"## {table.title}", parts[f"table {table.name}"], how_far(paper, table, folder)]
    text.append(f"Made by `python -m experiments {paper.name}`.")
    return "\n\n".join(text) + "\n"


def render(paper: Paper, folder: Path, parts: dict[str, str]) -> Path:
    """Write the page of a paper as Markdown; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{paper.name}.md"
    part = path.with_name(path.name + ".part")
    part.write_text(page(paper, folder, parts), encoding="utf-8")
    os.replace(part, path)
    return path


def fill(text: str, parts: dict[str, str]) -> str:
    """A page of the documentation with its marked blocks as the results have them."""

    def put(match: re.Match[str]) -> str:
        name = match[2]
        if name not in parts:
            raise KeyError(f"a page asks for the block {name!r}; there are {', '.join(parts)}")
        return f"{match[1]}\n{parts[name]}\n\n{match[3]}"

    return BLOCK.sub(put, text)


def fill_docs(paper: Paper, parts: dict[str, str], docs: Path) -> Path | None:
    """Bring the blocks of docs/papers/<paper>.md up to date, if there is such a page."""
    path = docs / "papers" / f"{paper.name}.md"
    if not path.is_file():
        return None
    path.write_text(fill(path.read_text(encoding="utf-8"), parts), encoding="utf-8")
    return path


def pictures(paper: Paper, folder: Path, into: Path) -> list[str]:
    """Draw the figures of a paper from its results."""
    found = results(folder, paper)
    into.mkdir(parents=True, exist_ok=True)
    draws: list[tuple[pd.DataFrame, Callable[[pd.DataFrame, Path], list[str]]]] = [
        (found[t.name], t.figures) for t in paper.tables if t.figures and len(found[t.name])
    ]
    return [name for frame, draw in draws for name in draw(frame, into)]
