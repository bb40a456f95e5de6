"""Runs `joint_models.md`: what each block prints goes below it, and the picture beside the others.

``python docs/scripts/make_joint_models.py``
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import tempfile
from pathlib import Path

import matplotlib as mpl

DOCS = Path(__file__).parent.parent
PAGE = DOCS / "understand" / "methods" / "joint_models.md"
#: a block of code, and what it prints if that is shown
BLOCK = re.compile(r"```python\n(.*?)```\n(?:```text\n.*?```\n)?", flags=re.DOTALL)


def run(text: str) -> str:
    """The page with all that its blocks print, run in the folder where one is."""
    names: dict[str, object] = {}

    def with_output(found: re.Match[str]) -> str:
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            exec(found[1], names)
        shown = f"```text\n{told.getvalue()}```\n" if told.getvalue() else ""
        return f"```python\n{found[1]}```\n{shown}"

    return BLOCK.sub(with_output, text)


def main() -> None:
    mpl.use("Agg")
    with tempfile.TemporaryDirectory() as folder:
        here = Path.cwd()
        os.chdir(folder)
        try:
            text = run(PAGE.read_text(encoding="utf-8"))
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, DOCS / "pictures" / picture.name)
        finally:
            os.chdir(here)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
