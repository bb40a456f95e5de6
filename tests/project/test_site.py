"""The site: every page is in its navigation, every public name in its reference, once."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant as cal

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
URL = "https://example.org/calibrant"


@pytest.fixture(scope="module")
def hooks():
    """docs/scripts/site_hooks.py, which is no part of the package."""
    path = DOCS / "scripts" / "site_hooks.py"
    spec = importlib.util.spec_from_file_location("site_hooks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def navigation():
    """What mkdocs.yml says under nav, line by line; PyYAML comes with mkdocs only."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    return re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", text, flags=re.MULTILINE)


# --- pages ----------------------------------------------------------------------------------------


def test_every_page_is_in_the_navigation(hooks):
    named = [name for name in hooks.expanded(navigation(), DOCS, URL) if name[:3] != "../"]
    assert sorted(named) == sorted(set(named))
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    made = {hooks.docs_page(path, DOCS).as_posix() for path in DOCS.rglob("*.ipynb")}
    assert set(named) == pages | made


def test_tables_of_results_are_folded_into_a_page(hooks, tmp_path):
    results = tmp_path / "paper.md"
    text = "# P\n\n## Table 1: <all>\n\n<!-- table 1 -->\n\n### part\n\n| a |\n\n<!-- end -->\n"
    results.write_text(text, encoding="utf-8")
    page, wrong = hooks.folded("Text.\n\n<!-- fold table 1 -->\n\nMore.", results)
    assert not wrong
    assert (
        '<details markdown="1"><summary>Table 1: &lt;all&gt;</summary>\n\n**part**\n\n| a |' in page
    )
    assert hooks.folded("<!-- fold table 2 -->", results)[1] == ["paper.md has no part 'table 2'"]
    assert hooks.folded("Text.", tmp_path / "none.md") == ("Text.", [])


def test_every_fold_has_its_table(hooks):
    for page in (DOCS / "evidence").rglob("*.md"):
        text, wrong = hooks.filled(page.read_text(encoding="utf-8"), page, ROOT)
        assert not wrong
        assert "<!-- fold" not in text


def test_tables_of_the_code_have_every_measure_and_option(hooks):
    functions = hooks.docstrings(ROOT / "src" / "calibrant" / "metrics")
    for page in ("metrics", "tests"):
        text = (DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8")
        named = [name for found in hooks.MEASURES.findall(text) for name in found.split()]
        assert len(named) > 8
        assert all(cal.metrics.__dict__.get(name, getattr(cal.metrics, name)) for name in named)
        assert all(hooks.sentences(functions[name])[0] for name in named)
    table = hooks.options_table("export")
    assert "| `--dialect` NAME | SQL: duckdb," in table
    assert "--json" not in table
    assert "| `--json` |" in hooks.options_table("many")


def test_a_section_of_another_file_is_folded_into_a_page(hooks, tmp_path):
    (tmp_path / "a.md").write_text("# A\n\n## B: c\n\n| [x](y.md) |\n\n## D\n\nno\n")
    page, wrong = hooks.with_sections("<!-- fold a.md: B: c -->", tmp_path)
    assert not wrong
    assert page == '<details markdown="1"><summary>B: c</summary>\n\n| x |\n\n</details>\n'
    assert hooks.with_sections("<!-- fold a.md: E -->", tmp_path)[1] == ["a.md has no section 'E'"]


def test_navigation_is_written_out(hooks):
    nav = ["a.md", {"Papers": ["evidence/papers/README.md", "evidence/papers/*.md"]}]
    first, papers = hooks.expanded([*nav, {"Changes": "../CHANGELOG.md"}], DOCS, URL)[:2]
    assert first == "a.md"
    assert papers["Papers"][0] == "evidence/papers/README.md"
    assert "evidence/papers/bella2009.md" in papers["Papers"][1:]
    assert papers["Papers"].count("evidence/papers/README.md") == 1
    (changes,) = hooks.expanded([{"Changes": "../CHANGELOG.md"}], DOCS, URL)
    assert changes == {"Changes": f"{URL}/blob/main/CHANGELOG.md"}


@pytest.mark.parametrize(
    ("link", "turned"),
    [
        ("../../CHANGELOG.md", f"{URL}/blob/main/CHANGELOG.md"),
        ("../../CONTRIBUTING.md#habits", f"{URL}/blob/main/CONTRIBUTING.md#habits"),
        ("../../benchmarks/results", f"{URL}/tree/main/benchmarks/results"),
        ("../scripts/make_api.py", f"{URL}/blob/main/docs/scripts/make_api.py"),
        ("prior.md#a-new-market", "prior.md#a-new-market"),
        ("../pictures/map.png", "../pictures/map.png"),
        ("https://example.com/x.md", "https://example.com/x.md"),
        ("#here", "#here"),
    ],
)
def test_links_out_of_the_site_lead_to_the_repository(hooks, link, turned):
    page = DOCS / "howto" / "choosing.md"
    for text in ("See [it]({})\nand more.", "See [it][a].\n\n[a]: {}\n", "![]({})"):
        found, wrong = hooks.linked(text.format(link), page, DOCS, URL)
        assert found == text.format(turned)
        assert not wrong


def test_links_that_lead_nowhere_are_told(hooks):
    page = DOCS / "howto" / "choosing.md"
    text = (
        "[a](../../no.md) [b](../../../out.md) `[c](../../no.md)`\n\n```\n[d](../../no.md)\n```\n"
    )
    found, wrong = hooks.linked(text, page, DOCS, URL)
    assert found == text
    assert len(wrong) == 2
    assert "does not exist: ../../no.md" in wrong[0]
    assert "out of the repository: ../../../out.md" in wrong[1]


def test_lists_are_lists_without_an_empty_line(hooks):
    assert hooks.spaced("Words:\n- a\n  more\n- b") == "Words:\n\n- a\n  more\n- b"
    assert hooks.spaced("Words:\n1. a\n2. b") == "Words:\n\n1. a\n2. b"
    for text in ("in the year\n2020. So", "- a\n  words\n- b", "```\nx\n- y\n```", "# Head\n- a"):
        assert hooks.spaced(text) == text


def test_names_below_a_heading_are_a_step_smaller(hooks):
    said = "::: a.b\n    options:\n      heading_level: 3\n"
    assert hooks.nested("# A\n\n::: a.b\n") == "# A\n\n::: a.b\n"
    assert hooks.nested("# A\n\n## B\n\n::: a.b\n") == f"# A\n\n## B\n\n{said}"
    more = "      inherited_members: false\n"
    assert hooks.nested(f"\n## B\n::: a.b\n    options:\n{more}") == f"\n## B\n{said}{more}"


def test_long_printed_lines_are_marked(hooks):
    rows, sentence = "```text\na  b\n```", f"```text\n{'word ' * 40}\n```"
    assert hooks.marked(rows) == rows
    assert hooks.marked(sentence).startswith("```{.text .sentences}\n")
    assert hooks.marked(f"```\n{'word ' * 22}\n```").startswith("```{.text .wide}\n")
    between = f"```python\nx\n```\n{'word ' * 40}\n```sh\ny\n```"
    assert hooks.marked(between) == between


# --- the reference --------------------------------------------------------------------------------


def shown():
    """The names that the pages of the reference show."""
    pages = sorted((DOCS / "reference" / "api").glob("*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    return re.findall(r"^::: calibrant\.(\S+)$", text, flags=re.MULTILINE)


def value(path):
    found = cal
    for name in path.split("."):
        found = getattr(found, name)
    return found


def test_every_public_name_is_in_the_reference_once():
    rooms = {"": cal} | {
        f"{name}.": getattr(cal, name)
        for name in cal.__all__
        if inspect.ismodule(getattr(cal, name))
    }
    public = {
        id(member): prefix + name
        for prefix, room in reversed(rooms.items())  # the shortest name comes last, and stays
        for name in room.__all__
        if not inspect.ismodule(member := getattr(room, name))
    }
    assert sorted(shown()) == sorted(public.values())
    assert {id(value(path)) for path in shown()} == set(public)


def test_the_first_page_names_all_pages_of_the_reference():
    folder = DOCS / "reference" / "api"
    index = (folder / "index.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| \[.*?\]\((\w+\.md)\)", index, flags=re.MULTILINE)
    assert sorted([*named, "index.md"]) == sorted(page.name for page in folder.glob("*.md"))


# --- the build ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; with the extra `docs` only."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.full
def test_the_site_asks_no_other_host(site):
    asks = re.compile(
        r"<(?:script|img|iframe|source)\b[^>]+src=\"(?:https?:)?//|<link\b[^>]+href=\"(?:https?:)?//"
    )
    for page in site.rglob("*.html"):
        assert not asks.search(page.read_text(encoding="utf-8")), page.name
    for sheet in site.rglob("*.css"):
        assert "url(http" not in sheet.read_text(encoding="utf-8"), sheet.name


@pytest.mark.full
def test_what_people_search_for_is_found_in_headings(site):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    titles = " ".join(page["title"] for page in index["docs"])
    found = set(re.split(index["config"]["separator"], titles.lower()))
    words = "conformal ordinal cite credit fico inverse low bad conformal top k weights ties"
    assert set(words.split()) <= found


@pytest.mark.full
def test_pages_are_read_as_they_are_elsewhere(site, hooks):
    """Lists, tables and blocks are those that CommonMark sees, the reference apart."""
    common = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    for source in DOCS.rglob("*.md"):
        page = (site / source.relative_to(DOCS)).with_suffix(".html")
        page = page.with_name("index.html") if source.name == "README.md" else page
        if source.parent.name == "api":
            continue
        text = page.read_text(encoding="utf-8")
        found = text[text.index("<article") : text.index("</article>")]
        wanted = common.render(hooks.filled(source.read_text(encoding="utf-8"), source, ROOT)[0])
        for tag in ("li", "table", "tr", "pre", "h2", "h3", "img"):
            count = [len(re.findall(rf"<{tag}[ >]", one)) for one in (found, wanted)]
            assert count[0] == count[1], (source.name, tag)
