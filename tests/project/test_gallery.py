"""Every example of the gallery runs, and its page and notebook are made of its script.

And the page of the house names every room.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib

import pytest

#: examples of more than a second
LONG = {
    "before_and_after",
    "comparing",
    "cost_threshold",
    "digits_logits",
    "joint_models",
    "larger_than_memory",
}
EXAMPLES = (
    "before_and_after",
    "comparing",
    "confidence_in_words",
    "cost_threshold",
    "digits_logits",
    "few_rows",
    "joint_models",
    "larger_than_memory",
    "monitoring",
    "segments",
    "shipping",
    "undersampling",
    "where_wrong",
)
NUMBER = re.compile(r"[-+−]?[\d,]*\.?\d+(?:e[-+]?\d+)?")


@pytest.fixture(scope="module")
def maker(root):
    """docs/scripts/make_gallery.py, which is no part of the package."""
    path = root / "docs" / "scripts" / "make_gallery.py"
    spec = importlib.util.spec_from_file_location("make_gallery", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_gallery"] = module  # its dataclass looks for it there
    spec.loader.exec_module(module)
    return module


def read(maker, name, ending):
    """A file of an example; the page is made of the others, as the site does it."""
    if ending == "md" and name != "index":
        return maker.page_of(name)
    return (maker.GALLERY / f"{name}.{ending}").read_text(encoding="utf-8")


def words(text):
    """What is said, without figures and rules, whose places move with their lengths."""
    return NUMBER.sub("0", re.sub(r"[─═]+", "─", text)).split()


def test_every_example_is_on_the_first_page(maker):
    assert sorted(maker.NAMES) == list(EXAMPLES)
    assert {path.stem for path in maker.GALLERY.glob("*.py")} == set(EXAMPLES)
    assert read(maker, "index", "md") == maker.index()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.full] * (name in LONG)) for name in EXAMPLES]
)
def test_runs_and_says_what_the_page_shows(maker, name, tmp_path):
    cells = maker.cells_of(read(maker, name, "py"))
    maker.run(cells, tmp_path)
    shown = re.findall(r"```text\n(.*?)\n```", read(maker, name, "md"), flags=re.DOTALL)
    printed = [cell.printed for cell in cells if cell.printed]
    assert [words(text) for text in printed] == [words(text) for text in shown]
    for cell in cells:
        for picture in cell.pictures:
            assert f"![{maker.alt(cell)}](pictures/{picture})" in read(maker, name, "md")
    assert any(cell.pictures for cell in cells)


@pytest.mark.parametrize("name", EXAMPLES)
def test_page_and_notebook_hold_the_code_and_the_text_of_the_script(maker, name):
    cells = maker.cells_of(read(maker, name, "py"))
    code = [cell.source for cell in cells if cell.kind == "code"]
    page = read(maker, name, "md")
    assert re.findall(r"```python\n(.*?)\n```", page, flags=re.DOTALL) == code
    notes = json.loads(read(maker, name, "ipynb"))
    assert (notes["nbformat"], notes["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notes["cells"]]
    assert len(set(ids)) == len(ids)
    sources = {"code": [], "markdown": []}
    for cell in notes["cells"]:
        sources[cell["cell_type"]].append("".join(cell["source"]))
    assert [text for text in sources["code"] if "IPython.display" not in text] == code
    texts = [cell.source for cell in cells if cell.kind == "markdown"]
    assert sources["markdown"] == [maker.without_links(text) for text in texts]
    for text in texts:
        assert (
            text.partition("\n")[2] in page
        )  # all but the title, below which the files are offered
    assert f"]({name}.py)" in page
    assert f"]({name}.ipynb)" in page


@pytest.mark.parametrize("name", EXAMPLES)
def test_figures_in_the_text_are_printed_or_set(maker, name):
    """A decimal in the text of a page is one of its outputs or of its code."""
    text = "\n".join(
        cell.source for cell in maker.cells_of(read(maker, name, "py")) if cell.kind == "markdown"
    )
    known = re.findall(r"```.*?```", read(maker, name, "md"), flags=re.DOTALL)
    assert set(re.findall(r"\d+\.\d+", text)) <= set(re.findall(r"\d+\.\d+", "".join(known)))


def test_pictures_are_small_and_all_are_shown(maker):
    pictures = {path.name: path.stat().st_size for path in maker.PICTURES.glob("*")}
    assert max(pictures.values()) < 80_000
    assert sum(pictures.values()) < 2_000_000
    pages = "".join(read(maker, name, "md") for name in EXAMPLES)
    assert set(re.findall(r"\(pictures/([^)]+)\)", pages)) == set(pictures)


def test_the_page_of_the_house_names_every_room(root):
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    stairs = project["tool"]["importlinter"]["contracts"][0]["layers"]
    rooms = {room.strip() for step in stairs for room in step.split("|")}
    page = (root / "docs" / "contribute" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## The rooms")[2].partition("## ")[0]
    firsts = re.findall(r"^\| (`.*?`) \|", table, flags=re.MULTILINE)
    named = {room for first in firsts for room in re.findall(r"`(\w+)`", first)}
    assert rooms <= named <= {path.stem for path in (root / "src" / "calibrant").iterdir()}
