"""Pages of results: Markdown, HTML, and the blocks of the documentation that quote them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from html import escape
from pathlib import Path

import pandas as pd
from markdown_it import MarkdownIt

from experiments import table as as_table
from experiments.papers.cells import Claim, Paper, Table
from experiments.papers.run import journal, results

__all__ = ["blocks", "fill", "page", "render"]

#: <!-- claims --> or <!-- table 1a -->, what stands there, <!-- end -->
BLOCK = re.compile(r"(<!-- (claims|table [^ ]+) -->\n).*?(<!-- end -->)", re.DOTALL)

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem;
  color: #1b1f24; background: #fff; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; margin: 1rem 0;
  font-variant-numeric: tabular-nums; }
th, td { border: 1px solid #d0d7de; padding: .25rem .6rem; text-align: left; }
th { background: #f6f8fa; position: sticky; top: 0; }
tr:nth-child(even) td { background: #fafbfc; }
code { background: #f6f8fa; padding: .1rem .3rem; border-radius: 4px; }
@media (prefers-color-scheme: dark) {
  body { color: #e6edf3; background: #0d1117; }
  th, td { border-color: #30363d; }
  th, code { background: #161b22; }
  tr:nth-child(even) td { background: #11161d; }
}
"""


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


def as_html(title: str, markdown: str) -> str:
    """The same page for a browser, complete in itself."""
    body = MarkdownIt("commonmark").enable("table").render(markdown)
    body = body.replace("<table>", '<div class="wide"><table>')
    body = body.replace("</table>", "</table></div>")
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head>\n<body>\n{body}</body></html>\n"
    )


def render(paper: Paper, folder: Path, parts: dict[str, str]) -> list[Path]:
    """Write the page of a paper as Markdown and as HTML."""
    text = page(paper, folder, parts)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for suffix, content in ((".md", text), (".html", as_html(paper.title, text))):
        path = folder / f"{paper.name}{suffix}"
        part = path.with_name(path.name + ".part")
        part.write_text(content, encoding="utf-8")
        os.replace(part, path)
        written.append(path)
    return written


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
