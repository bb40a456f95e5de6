"""What the site's build does to pages: links into the repository, lists as GitHub reads them,
tables of results and of the code in the place of their marks.

mkdocs calls the functions whose names begin with ``on_``; mkdocs.yml names this file. A page says
``../../benchmarks/results/fit.md`` for a file that is not part of the site: that becomes a link to
the repository. A link to a file that does not exist is a warning, and `mkdocs build --strict`
fails at warnings.
"""

from __future__ import annotations

import ast
import html
import importlib.util
import logging
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

try:
    from mkdocs.structure.files import File
except ImportError:  # the tests of what needs no mkdocs
    File = None

log = logging.getLogger("mkdocs.site_hooks")

#: folders below docs that are not part of the site (`exclude_docs` of mkdocs.yml)
NOT_IN_SITE = ("scripts",)
BRANCH = "main"

#: code, in which nothing is a link: fenced blocks and spans
CODE = re.compile(r"^([ ]*)(```+|~~~+)[^\n]*\n.*?^\1\2[ ]*$|(`+)(?!`).+?(?<!`)\3(?!`)", re.M | re.S)
#: the target of [text](target), of [text](target "title") and of [name]: target
LINK = re.compile(r"(\]\(|^\[[^\]\n]+\]:[ ]+)([^)\s]+)", re.M)
#: what has a scheme or a host, and what is a place on the same page
ELSEWHERE = re.compile(r"[a-z][a-z+.-]*:|//|#", re.IGNORECASE)
#: the first line of a list that GitHub sees even where no empty line is before it
ITEM = re.compile(r"[ ]*(?:[-*+]|1[.)])[ ]+\S")
ANY_ITEM = re.compile(r"[ ]*(?:[-*+]|\d+[.)])[ ]+\S")


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with its prose changed and its code as it is."""
    parts, end = [], 0
    for found in CODE.finditer(text):
        parts += [change(text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, change(text[end:])])


def address(path: Path, root: Path, repo_url: str) -> str:
    """Where a file or a folder is in the repository."""
    kind = "tree" if path.is_dir() else "blob"
    return f"{repo_url.rstrip('/')}/{kind}/{BRANCH}/{path.relative_to(root).as_posix()}"


def linked(text: str, page: Path, docs: Path, repo_url: str) -> tuple[str, list[str]]:
    """A page with its links to files outside the site turned, and what is wrong with its links."""
    root, wrong = docs.parent, []

    def turn(found: re.Match[str]) -> str:
        target, hash_, place = found[2].partition("#")
        if not target or ELSEWHERE.match(target):
            return found[0]
        path = (page.parent / target).resolve()
        if not path.is_relative_to(root):
            wrong.append(f"a link leads out of the repository: {target}")
        elif not path.exists():
            if not path.is_relative_to(docs):  # of those below docs mkdocs complains
                wrong.append(f"a link leads to a file that does not exist: {target}")
        elif not in_site(path, docs):
            return f"{found[1]}{address(path, root, repo_url)}{hash_}{place}"
        return found[0]

    return outside_code(text, lambda prose: LINK.sub(turn, prose)), wrong


def in_site(path: Path, docs: Path) -> bool:
    """Whether the site has a page or a copy of a file."""
    if not path.is_relative_to(docs) or path.is_dir():
        return False
    return path.relative_to(docs).parts[0] not in NOT_IN_SITE


def spaced(text: str) -> str:
    """A page with an empty line before each list and table, as Python's Markdown wants it."""
    lines: list[str] = []
    for line, code in _lines(text):
        before = lines[-1] if lines else ""
        prose = before.strip() and not code and not before.lstrip().startswith(("#", "<!--", ">"))
        in_list = ANY_ITEM.match(before) or before.startswith("  ")
        if prose and ITEM.match(line) and not in_list:
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


#: a public name that the site shows, and the first of its options, if it has any
SHOWN = re.compile(r"^(::: \S+)\n(    options:\n)?", re.M)


def nested(text: str) -> str:
    """A page of the reference whose names below a heading get headings one step smaller."""
    before, below, rest = text.partition("\n## ")
    return before + below + SHOWN.sub(r"\1\n    options:\n      heading_level: 3\n", rest)


#: a fenced block: its language, and what is in it
BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.M | re.S)
#: longer lines need smaller letters
WIDE = 100
#: longer lines are sentences, not rows of a table
LONG = 120


def marked(text: str) -> str:
    """A page whose long printed lines are marked: the style sheet wraps or shrinks them."""

    def mark(found: re.Match[str]) -> str:
        length = max(map(len, found[2].splitlines()), default=0)
        if found[1] not in ("", "text") or length <= WIDE:
            return found[0]
        return f"```{{.text .{'sentences' if length > LONG else 'wide'}}}\n{found[2]}```"

    return BLOCK.sub(mark, text)


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is in a fenced block."""
    fence = ""
    for line in text.split("\n"):
        found = re.match(r"[ ]*(```+|~~~+)", line)
        yield line, bool(fence)
        if found and not fence:
            fence = found[1]
        elif found and line.strip() == fence:
            fence = ""


#: on a page: the table of results that stands here on the site
FOLD = re.compile(r"^<!-- fold (.+?) -->$", re.M)
#: in the results: a part with its heading
MARKED = re.compile(r"^## ([^\n]+)\n+<!-- ([^\n]+?) -->\n(.*?)<!-- end -->$", re.M | re.S)
#: on a page: a section of a file of results, by the file's path and the section's heading
SECTION = re.compile(r"^<!-- fold (\S+\.md): (.+?) -->$", re.M)


def folded(text: str, results: Path) -> tuple[str, list[str]]:
    """A page with the tables of its results behind folds, and which of them are not there."""
    if not FOLD.search(text):
        return text, []
    found: dict[str, tuple[str, str]] = {}
    if results.is_file():
        parts = MARKED.findall(results.read_text(encoding="utf-8"))
        found = {name: (title, body) for title, name, body in parts}
    wrong: list[str] = []

    def put(match: re.Match[str]) -> str:
        if match[1] not in found:
            wrong.append(f"{results.name} has no part {match[1]!r}")
            return match[0]
        return fold(*found[match[1]])

    return FOLD.sub(put, text), wrong


def fold(title: str, body: str) -> str:
    """A part of a page that opens when its title is clicked; without headings of its own."""
    body = re.sub(r"^#+ (.+)$", r"**\1**", body, flags=re.M)
    return (
        f'<details markdown="1"><summary>{html.escape(title)}</summary>\n\n'
        f"{body.strip()}\n\n</details>\n"
    )


def with_sections(text: str, root: Path) -> tuple[str, list[str]]:
    """A page with the named sections of other files behind folds, and which are not there."""
    wrong: list[str] = []

    def put(match: re.Match[str]) -> str:
        path, heading = root / match[1], match[2]
        said = path.read_text(encoding="utf-8") if path.is_file() else ""
        after = f"\n{said}".partition(f"\n## {heading}\n")[2]
        if not after:
            wrong.append(f"{match[1]} has no section {heading!r}")
            return match[0]
        body = re.sub(r"<!-- .*? -->|!\[[^]]*\]\([^)]*\)", "", after.partition("\n## ")[0])
        return fold(heading, re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", body))

    return SECTION.sub(put, text), wrong


# --- tables that come from the code ---------------------------------------------------------------

#: on a page: a table of these functions of `calibrant.metrics`, from their docstrings
MEASURES = re.compile(r"^<!-- measures (.+?) -->$", re.M)
#: on a page: a table of the options of a command, or of those that many commands have
OPTIONS = re.compile(r"^<!-- options (\w+) -->$", re.M)
#: an option is one of many commands if so many have it with the same words
MANY = 4


def docstrings(room: Path) -> dict[str, str]:
    """The docstrings of the functions of a folder, by name; nothing is imported."""
    return {
        one.name: ast.get_docstring(one) or ""
        for path in sorted(room.rglob("*.py"))
        for one in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(one, ast.FunctionDef)
    }


def sentences(docstring: str) -> tuple[str, str, str]:
    """Of a measure's docstring: what it is, which values are good, and when it misleads."""
    lines = [" ".join(part.split()) for part in docstring.split("\n\n")]
    good = lines[1] if len(lines) > 1 and not lines[1].startswith("Parameters") else ""
    misleads = [part for part in lines if re.search(r"\b(It|When it) misleads\b", part)]
    said = misleads[0][misleads[0].index("isleads") + 7 :].lstrip(": ") if misleads else ""
    said = re.sub(r" [^.]*\bO\(.*", "", said)  # the cost stands behind it
    return lines[0], good, said[:1].upper() + said[1:]


def measures_table(names: str, functions: dict[str, str]) -> str:
    """A line for each of these functions, with a link to all that its docstring says."""
    rows = []
    for name in names.split():
        link = f"[`{name}`][calibrant.metrics.{name}]"
        cells = (re.sub(r"\s*\[\d+\]_", "", cell) for cell in sentences(functions[name]))
        rows.append((link, *(cell.replace("|", "\\|") for cell in cells)))
    return _table(("", "what it is", "good values", "when it misleads"), rows)


def _options() -> dict[str, list[tuple[str, str]]]:
    """The options of each command and what its help says of them; of many commands: ``many``."""
    from calibrant.cli.app import COMMANDS, parser

    found: dict[str, list[tuple[str, str]]] = {}
    for command in COMMANDS:
        options = [
            one for one in parser().get_command(None, command).params if one.opts[0][0] == "-"
        ]
        found[command] = [(_spelled(one), _meaning(one)) for one in options]
    of: dict[tuple[str, str], list[str]] = {}
    for command, options in found.items():
        for option in options:
            of.setdefault(option, []).append(command)
    many = {option for option, commands in of.items() if len(commands) >= MANY}
    found = {name: [one for one in all_ if one not in many] for name, all_ in found.items()}
    return found | {
        "many": [
            (option, f"{said} *({', '.join(of[option, said])})*")
            for option, said in of
            if (option, said) in many
        ]
    }


def _spelled(option: Any) -> str:
    words = ", ".join(f"`{word}`" for word in option.opts)
    return f"{words} {option.metavar}" if option.metavar else words


def _meaning(option: Any) -> str:
    default = option.default
    if option.required:
        return f"{option.help} Required."
    if default in (None, False, "") or "default" in option.help:
        return option.help
    return f"{option.help} Default: `{default}`."


def options_table(command: str) -> str:
    """The options of a command, as its help has them."""
    rows = [tuple(cell.replace("|", "\\|") for cell in row) for row in _options()[command]]
    return _table(("option", "what it says"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def filled(text: str, source: Path, root: Path) -> tuple[str, list[str]]:
    """A page with everything in the place of its marks, and what is missing."""
    if MEASURES.search(text):
        functions = docstrings(root / "src" / "calibrant" / "metrics")
        text = MEASURES.sub(lambda match: measures_table(match[1], functions), text)
    text = OPTIONS.sub(lambda match: options_table(match[1]), text)
    text, no_section = with_sections(text, root)
    whole, no_part = folded(text, root / "experiments" / "results" / source.name)
    return whole, no_section + no_part


def expanded(nav: Any, docs: Path, repo_url: str) -> Any:
    """The navigation with ``folder/*.md`` and ``../file`` written out."""
    named = set(_named(nav))

    def of(entry: Any) -> list[Any]:
        if isinstance(entry, dict):
            ((title, inner),) = entry.items()
            return [{title: inner_of(inner)}]
        if str(entry).endswith("*.md"):
            pages = [path.relative_to(docs) for path in docs.glob(entry)]
            pages += [docs_page(path, docs) for path in docs.glob(f"{entry[:-3]}.ipynb")]
            found = sorted(page.as_posix() for page in pages)
            return [page for page in found if page not in named]
        return [entry]

    def inner_of(inner: Any) -> Any:
        if isinstance(inner, list):
            return [new for entry in inner for new in of(entry)]
        if inner.startswith("../"):
            return address((docs / inner).resolve(), docs.parent, repo_url)
        return inner

    return inner_of(nav)


def docs_page(notebook: Path, docs: Path) -> Path:
    """The page that the site makes of an example of the gallery and its notebook."""
    return notebook.relative_to(docs).with_suffix(".md")


#: a link to an example of the gallery: on the site to its page
EXAMPLE = re.compile(r"(\]\((?:[\w./]*gallery/)?\w+)\.ipynb\)")


def examples() -> Any:
    """docs/scripts/make_gallery.py, which makes the pages of the gallery."""
    path = Path(__file__).parent / "make_gallery.py"
    spec = importlib.util.spec_from_file_location("make_gallery", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_gallery"] = module  # its dataclass looks for it there
    spec.loader.exec_module(module)
    return module


def _named(nav: Any) -> Iterator[str]:
    if isinstance(nav, list):
        for entry in nav:
            yield from _named(entry)
    elif isinstance(nav, dict):
        for inner in nav.values():
            yield from _named(inner)
    else:
        yield str(nav)


# --- called by mkdocs -----------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """Write the navigation out, and say which version the site is of."""
    docs = Path(config["docs_dir"])
    config["nav"] = expanded(config["nav"], docs, config["repo_url"])
    version = (docs.parent / "src" / "calibrant" / "version.py").read_text(encoding="utf-8")
    config["copyright"] = "calibrant " + re.findall(r'"(.+)"', version)[-1]
    return config


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add a page for each example of the gallery."""
    maker = examples()
    for name in maker.NAMES:
        made = File.generated(config, f"gallery/{name}.md", content=maker.page_of(name))
        files.append(made)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Turn links, and complain of those that lead nowhere."""
    docs = Path(config["docs_dir"])
    source = docs / page.file.src_uri
    if source.is_file():  # the pages of examples offer their notebooks
        markdown = EXAMPLE.sub(r"\1.md)", markdown)
    whole, missing = filled(markdown, source, docs.parent)
    text, wrong = linked(whole, source, docs, config["repo_url"])
    for words in [*missing, *wrong]:
        log.warning("%s: %s", page.file.src_uri, words)
    return nested(marked(spaced(text)))


def on_post_page(output: str, **_: Any) -> str:
    """Leave out the theme's question to the repository's host for its number of stars."""
    return output.replace(' data-md-component="source"', "")
