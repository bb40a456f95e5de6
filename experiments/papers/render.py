"""Pages of results in Markdown, and the blocks of the documentation that quote them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from experiments import table as as_table
from experiments.papers.cells import Claim, Paper, Table
from experiments.papers.run import results

__all__ = ["Judged", "blocks", "fill", "fill_shares", "judged", "page", "render", "share"]

#: <!-- claims --> or <!-- table 1a -->, what stands there, <!-- end -->
BLOCK = re.compile(
    r"(<!-- (claims|cells|summary|tolerances|stale|table [^ ]+) -->\n).*?(<!-- end -->)", re.DOTALL
)
#: <!-- from naeini2018 3-6 -->, the share of the cells of that table, <!-- /from -->; "all": of all
SHARE = re.compile(r"(<!-- from (\w+) ([\w-]+) -->).*?(<!-- /from -->)", re.DOTALL)
#: <!-- verdicts naeini2018 -->, how many claims hold, <!-- /verdicts -->
TALLY = re.compile(r"(<!-- verdicts (\w+) -->).*?(<!-- /verdicts -->)", re.DOTALL)
#: of a table in <!-- from -->: all tables of the paper
EVERY = "all"
VERDICTS = {True: "yes", False: "**no**", None: "–"}


class Judged(NamedTuple):
    """A paper's results by table, its claims, and cells of each table: done, and of how many."""

    paper: Paper
    frames: dict[str, pd.DataFrame]
    claims: list[Claim]
    cells: dict[str, tuple[int, int]]

    @property
    def verdicts(self) -> list[bool | None]:
        """Of all distinct claims."""
        return [claim.holds for claim in self.claims if not claim.is_reading]

    def rests_on(self, claim: Claim) -> str:
        """The share of cells behind a claim, and which part of them is looked at."""
        if not claim.tables:
            return "–"
        done, total = map(sum, zip(*(self.cells[name] for name in claim.tables), strict=True))
        return "; ".join(part for part in (share(done, total), claim.selection) if part)


def judged(paper: Paper, folder: Path) -> Judged:
    """The claims of a paper, by the results that there are."""
    found = results(folder, paper)
    sizes = {table.name: len(table.cells(False)) for table in paper.tables}
    cells = {name: (len(found[name]), size) for name, size in sizes.items()}
    return Judged(paper, found, paper.claims(found), cells)


def share(done: int, total: int) -> str:
    """How many of the cells of a full run there are.

    >>> share(53, 299), share(20, 20)
    ('53 of 299 (18 %)', 'all 20')
    """
    if done == total:
        return f"all {total:,}"
    return f"{done:,} of {total:,} ({100 * done / total:.0f} %)"


def claims_table(found: Judged) -> str:
    """What the paper says, its figures and ours, the cells behind them, and the verdict."""
    rows = [
        (c.text, c.published, c.ours, found.rests_on(c), VERDICTS[c.holds], c.note)
        for c in found.claims
    ]
    head = ("the paper says", "published", "ours", "from cells", "holds", "note")
    return as_table(head, rows)


def how_far(found: Judged, table: Table) -> str:
    """How much of the full run the page rests on."""
    return f"*From {share(*found.cells[table.name])} cells of the full run.*"


def cells_table(found: Judged) -> str:
    """The share of each table that has been run."""
    rows = [(t.title.replace("|", "/"), share(*found.cells[t.name])) for t in found.paper.tables]
    there = as_table(("table", "cells of the full run that are there"), rows)
    left = [left_out(t, found.frames[t.name]) for t in found.paper.tables]
    return "\n\n".join([there, *filter(None, left)])


def left_out(table: Table, frame: pd.DataFrame) -> str:
    """Which cells of the full run are not there, by all keys but dataset and repetition."""
    whole = pd.DataFrame(table.cells(False)).astype(str)
    kind = [key for key in table.keys if key not in {"dataset", "seed", table.repeats}]
    if len(frame) == len(whole) or not kind:
        return ""
    all_cells = whole.groupby(kind, sort=False).size()
    done = frame[kind].astype(str).groupby(kind).size().reindex(all_cells.index, fill_value=0)
    missing = all_cells - done
    words = [
        f"{' '.join(name if isinstance(name, tuple) else (name,))} ({count} of {all_cells[name]})"
        for name, count in missing[missing > 0].items()
    ]
    return f"Not there, of {table.title.split(':')[0]}: {', '.join(words)}."


def blocks(found: Judged) -> dict[str, str]:
    """The parts of a page by name: "claims", "cells", and "table T" for each table."""
    parts = {"claims": claims_table(found), "cells": cells_table(found)}
    for table in found.paper.tables:
        frame = found.frames[table.name]
        text = table.page(frame) if len(frame) else "*Not run yet.*"
        parts[f"table {table.name}"] = f"{how_far(found, table)}\n\n{text}"
    return parts


def page(paper: Paper, parts: dict[str, str]) -> str:
    """Everything about a paper, as Markdown, of the blocks of its results."""
    claims = "## What the paper claims\n\n<!-- claims -->\n<!-- end -->"
    text = [f"# {paper.title}", paper.notes.strip(), fill(claims, parts)]
    for table in paper.tables:
        marked = f"## {table.title}\n\n<!-- table {table.name} -->\n<!-- end -->"
        text.append(fill(marked, parts))
    text.append(f"Made by `python -m experiments {paper.name}`.")
    return "\n\n".join(text) + "\n"


def render(paper: Paper, folder: Path, parts: dict[str, str]) -> Path:
    """Write the page of a paper as Markdown; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{paper.name}.md"
    part = path.with_name(path.name + ".part")
    part.write_text(page(paper, parts), encoding="utf-8")
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


def fill_shares(text: str, papers: Mapping[str, Judged]) -> str:
    """A page with the shares of cells and the verdicts that it tells in its sentences."""

    def tally(match: re.Match[str]) -> str:
        verdicts = papers[match[2]].verdicts
        yes, no, open_ = (verdicts.count(each) for each in (True, False, None))
        return f"{match[1]}{yes} hold, {no} do not, {open_} cannot be judged{match[3]}"

    def put(match: re.Match[str]) -> str:
        paper, table = match[2], match[3]
        found = papers[paper].cells
        if table != EVERY and table not in found:
            raise KeyError(f"a page asks for table {table!r} of {paper}; it has {', '.join(found)}")
        pairs = found.values() if table == EVERY else [found[table]]
        return f"{match[1]}{share(*map(sum, zip(*pairs, strict=True)))}{match[4]}"

    return TALLY.sub(tally, SHARE.sub(put, text))


def fill_docs(name: str, parts: dict[str, str], docs: Path) -> Path | None:
    """Bring the blocks of docs/evidence/papers/<name>.md up to date, if there is such a page."""
    path = docs / "evidence" / "papers" / f"{name}.md"
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
