"""Run the examples of the gallery and write their notebooks and thumbnails anew.

Run: python docs/scripts/make_gallery.py [NAME ...]

The source of an example is docs/gallery/NAME.py, in cells: `# %% [markdown]` is text, `# %%` code.
The notebook keeps what each cell prints, and the site makes the page of both when it is built.
The first line of a cell that saves a picture says what can be seen there: `# picture: ...`.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import io
import json
import os
import re
import sys
import tempfile
import textwrap
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GALLERY = Path(__file__).parent.parent / "gallery"
PICTURES = GALLERY / "pictures"
OPENING = "After this example you can "
#: letters in a line of what is printed
WIDTH = 88

#: the sections of the gallery's first page
SECTIONS = {
    "First steps": ("before_and_after", "cost_threshold", "few_rows"),
    "Harder data": ("undersampling", "digits_logits", "segments", "where_wrong", "joint_models"),
    "Language models": ("confidence_in_words",),
    "In production": ("shipping", "larger_than_memory", "monitoring"),
    "Research": ("comparing",),
}
NAMES = tuple(name for names in SECTIONS.values() for name in names)
#: packages that a page names with their versions: how they are imported, and what they are called
PACKAGES = {
    "calibrant": "calibrant",
    "numpy": "NumPy",
    "sklearn": "scikit-learn",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "polars": "Polars",
    "duckdb": "DuckDB",
    "onnxruntime": "ONNX Runtime",
}


@dataclass
class Cell:
    """Text or code of an example, and what came of running it."""

    kind: str
    source: str
    printed: str = ""
    pictures: list[str] = field(default_factory=list)


def cells_of(script: str) -> list[Cell]:
    """The cells of a script, in order; text without its comment signs."""
    found = []
    for part in re.split(r"^# %%", script, flags=re.MULTILINE)[1:]:
        first, _, body = part.partition("\n")
        if first.strip() == "[markdown]":
            lines = (re.sub(r"^# ?", "", line) for line in body.strip().splitlines())
            found.append(Cell("markdown", "\n".join(lines)))
        else:
            found.append(Cell("code", body.strip()))
    return found


def title_of(cells: list[Cell]) -> str:
    return cells[0].source.splitlines()[0].removeprefix("# ")


def promise_of(cells: list[Cell]) -> str:
    """The first paragraph, which says what the reader can do afterwards."""
    words = " ".join(cells[0].source.split("\n\n")[1].split())
    if not words.startswith(OPENING):
        raise ValueError(f"an example must begin {OPENING!r}, but it begins {words[:40]!r}")
    first, *rest = words.removeprefix(OPENING)
    return first.upper() + "".join(rest)


def run(cells: list[Cell], folder: Path) -> None:
    """Run the code cells in a folder, and note what each prints and saves."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        for cell in cells:
            if cell.kind != "code":
                continue
            known = set(folder.glob("*.png"))
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(cell.source, "<cell>", "exec"), names)
            cell.printed = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
            cell.printed = cell.printed.strip("\n")
            cell.pictures = sorted(path.name for path in set(folder.glob("*.png")) - known)


#: in a notebook: a cell that shows a picture
SHOWS = re.compile(r'Image\("([^"]+)"\)')
#: in a notebook's metadata: which packages it was run with
MADE_WITH = "made_with"


def page_of(name: str) -> str:
    """The example as Markdown: the text and code of the script, and what its notebook printed."""
    cells = cells_of((GALLERY / f"{name}.py").read_text(encoding="utf-8"))
    notes = json.loads((GALLERY / f"{name}.ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in cells if cell.kind == "code"]
    done: list[Cell] = []
    for one in notes["cells"]:
        if one["cell_type"] != "code":
            continue
        shown = SHOWS.search("".join(one["source"]))
        if shown:
            done[-1].pictures.append(shown[1])
            continue
        done.append(code[len(done)])
        done[-1].printed = "".join(text for out in one["outputs"] for text in out["text"])
    return page(name, cells, notes["metadata"][MADE_WITH])


def page(name: str, cells: list[Cell], made_with: str) -> str:
    """The example as Markdown."""
    title, _, rest = cells[0].source.partition("\n")
    links = f"[Download the script]({name}.py) · [as a notebook]({name}.ipynb)"
    parts = [title, links, rest.strip()]
    for cell in cells[1:]:
        if cell.kind == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        if cell.printed:
            parts.append(f"```text\n{wrapped(cell.printed)}\n```")
        parts += [f"![{alt(cell)}](pictures/{picture})" for picture in cell.pictures]
    parts.append(f"*{made_with}*")
    return "\n\n".join(parts) + "\n"


def wrapped(printed: str) -> str:
    """Long sentences in several lines; tables, which have columns, stay as they are."""
    lines = []
    for line in printed.splitlines():
        sentence = len(line) > WIDTH and "  " not in line
        lines += textwrap.wrap(line, WIDTH, break_on_hyphens=False) if sentence else [line]
    return "\n".join(lines)


def alt(cell: Cell) -> str:
    """What can be seen in the pictures of a cell."""
    lines = cell.source.splitlines()
    text = []
    if not lines[0].startswith("# picture: "):
        raise ValueError(f"a cell that saves a picture must begin '# picture: ...': {lines[0]}")
    for line in lines:
        if not line.startswith("# "):
            break
        text.append(line.removeprefix("# ").removeprefix("picture: "))
    words = " ".join(text)
    return words[0].upper() + words[1:]


def versions(cells: list[Cell]) -> str:
    """Which packages the figures were made with."""
    code = "\n".join(cell.source for cell in cells if cell.kind == "code")
    used = []
    for module, name in PACKAGES.items():
        if re.search(rf"^(?:import|from) {module}\b", code, flags=re.MULTILINE):
            used.append(f"{name} {importlib.import_module(module).__version__}")
    listed = f"{', '.join(used[:-1])} and {used[-1]}" if len(used) > 1 else used[0]
    return f"The figures of this page were made with {listed}. Other versions may move last digits."


def without_links(text: str) -> str:
    """Text for a notebook, far from the other pages: a link becomes the name of a file."""

    def named(match: re.Match[str]) -> str:
        where = (Path("docs/gallery") / match[2]).as_posix()
        where = re.sub(r"[^/]+/\.\./", "", where)
        return f"{match[1]} (`{where}`)"

    return re.sub(r"\[([^\]]+)\]\(([^)#]+)(?:#[^)]*)?\)", named, text)


def notebook(cells: list[Cell], folder: Path) -> str:
    """The example as a notebook; a picture that is saved is also shown."""
    listed: list[dict[str, Any]] = []

    def add(kind: str, source: str, **more: Any) -> None:
        cell = {"cell_type": kind, "id": f"cell-{len(listed)}", "metadata": {}}
        listed.append({**cell, "source": source.splitlines(keepends=True), **more})

    count = 0
    for cell in cells:
        if cell.kind == "markdown":
            add("markdown", without_links(cell.source))
            continue
        count += 1
        lines = cell.printed.splitlines(keepends=True)
        out = [{"output_type": "stream", "name": "stdout", "text": lines}] if lines else []
        add("code", cell.source, execution_count=count, outputs=out)
        for picture in cell.pictures:
            count += 1
            data = base64.b64encode((folder / picture).read_bytes()).decode()
            shown = {"image/png": data, "text/plain": ["<IPython.core.display.Image object>"]}
            result = {"output_type": "execute_result", "execution_count": count, "metadata": {}}
            add(
                "code",
                f'from IPython.display import Image\n\nImage("{picture}")',
                execution_count=count,
                outputs=[{**result, "data": shown}],
            )
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {
        "kernelspec": kernel,
        "language_info": {"name": "python"},
        MADE_WITH: versions(cells),
    }
    whole = {"cells": listed, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def shrink(picture: Path, target: Path) -> None:
    """The picture in few colours and without metadata, so that an unchanged one stays the same."""
    from PIL import Image

    Image.open(picture).convert("RGB").quantize(64).save(target, optimize=True)


def index() -> str:
    """The first page of the gallery: what each example promises, and its last picture."""
    parts = [
        "# Gallery",
        "After this page you can take a whole job that was run, from a model to probabilities\n"
        "that hold, and change it into yours. Each example runs in seconds on a laptop, with data\n"
        "that come with scikit-learn or are simulated. Its page offers the script and a notebook.",
        "`pip install 'calibrant[cli]' lightgbm xgboost pandas polars onnx onnxruntime` brings "
        "what all of them need.",
    ]
    for section, names in SECTIONS.items():
        cards = []
        for name in names:
            cells = cells_of((GALLERY / f"{name}.py").read_text(encoding="utf-8"))
            notes = (GALLERY / f"{name}.ipynb").read_text(encoding="utf-8")
            *_, picture = SHOWS.findall(notes.replace('\\"', '"'))
            cards.append(
                f"-   **[{title_of(cells)}]({name}.ipynb)**\n\n    {promise_of(cells)}\n\n"
                f"    [![]({PICTURES.name}/{picture})]({name}.ipynb)"
            )
        listed = "\n\n".join(cards)
        parts.append(f'## {section}\n\n<div class="grid cards" markdown>\n\n{listed}\n\n</div>')
    return "\n\n".join(parts) + "\n"


def make(name: str) -> None:
    cells = cells_of((GALLERY / f"{name}.py").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        run(cells, folder)
        for picture in (picture for cell in cells for picture in cell.pictures):
            shrink(folder / picture, PICTURES / picture)
    (GALLERY / f"{name}.ipynb").write_text(notebook(cells, PICTURES), encoding="utf-8")


def main() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    PICTURES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or NAMES:
        make(name)
    (GALLERY / "index.md").write_text(index(), encoding="utf-8")


if __name__ == "__main__":
    main()
