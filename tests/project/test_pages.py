"""The Python of every page runs as pasted, from the top, and prints what the page shows.

A page is one program, run in an empty folder. A block of text right behind a block of Python is
what that block prints. A block that cannot run here says why in a comment on the line before it::

    <!-- not run: it needs a GPU -->

The gallery has a test of its own, and so has the README.
"""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from calibrant.errors import CalibrationWarning

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^([ ]*)```([\w-]*)[^\n]*\n(.*?)^\1```[ ]*$", flags=re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: ((?:(?!-->)[^\n])+) -->\n\Z")
#: the last column of a leaderboard: how many seconds a fit took
SECONDS = re.compile(r" +\d+\.\d{3}$", flags=re.MULTILINE)

#: pages of more than five seconds
LONG = {
    "docs/howto/classifier.md",
    "docs/howto/coming_from.md",
    "docs/howto/engines.md",
    "docs/howto/export.md",
    "docs/howto/few_rows.md",
    "docs/howto/llm.md",
    "docs/howto/logits.md",
    "docs/howto/multiclass.md",
    "docs/howto/prior.md",
    "docs/howto/report.md",
    "docs/start/why.md",
    "docs/understand/diagrams.md",
    "docs/understand/how_much_data.md",
    "docs/understand/methods/acp.md",
    "docs/understand/methods/boosting.md",
}
#: pages on which nothing may warn
QUIET = {"docs/howto/llm.md"}
#: pages that print more than they show
TALKATIVE = {"docs/howto/engines.md", "docs/reference/maps.md", "docs/reference/metrics.md"}
#: how many blocks are not run, of all pages together
NOT_RUN_COUNT = 10


@dataclass(frozen=True)
class Step:
    """A block of Python, what the page shows below it, and why it is not run, if it is not."""

    line: int
    code: str
    shown: str | None
    reason: str | None


@dataclass
class Run:
    """What a page has left behind."""

    folder: Path
    text: str
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    printed: str = ""


def steps(text: str) -> Iterator[Step]:
    """The blocks of Python of a page."""
    blocks = [*FENCE.finditer(text), None]
    for block, after in pairwise(blocks):
        if block[2] != "python":
            continue
        shows = (
            after is not None
            and after[2] in ("", "text")
            and not text[block.end() : after.start()].strip()
        )
        reason = NOT_RUN.search(text[: block.start()])
        yield Step(
            text.count("\n", 0, block.start()) + 1,
            textwrap.dedent(block[3]),
            textwrap.dedent(after[3]) if shows else None,
            reason[1] if reason else None,
        )


def told(text: str) -> str:
    """What is printed, but for the times in a leaderboard."""
    timed = re.search(r"^method .* s$", text, flags=re.MULTILINE)
    return (SECONDS.sub("", text) if timed else text).rstrip()


def pages() -> dict[str, list[Step]]:
    """The pages with Python, and their blocks."""
    found = [path for path in DOCS.rglob("*.md") if "gallery" not in path.parts]
    read = {
        path.relative_to(ROOT).as_posix(): list(steps(path.read_text(encoding="utf-8")))
        for path in (*sorted(found), ROOT / "CONTRIBUTING.md")
    }
    return {name: blocks for name, blocks in read.items() if blocks}


def marked() -> list[Any]:
    """The pages that run, the long ones only in the full suite."""
    return [
        pytest.param(name, marks=[pytest.mark.full] * (name in LONG))
        for name, blocks in pages().items()
        if any(step.reason is None for step in blocks)
    ]


# --- what a page must have done, beside showing what it prints ------------------------------------

AFTER: dict[str, Callable[[Run], None]] = {}


def after(page: str) -> Callable[[Callable[[Run], None]], Callable[[Run], None]]:
    """Say what holds when a page has run."""

    def keep(check: Callable[[Run], None]) -> Callable[[Run], None]:
        assert page not in AFTER
        AFTER[page] = check
        return check

    return keep


@after("docs/howto/choosing.md")
def _(run: Run) -> None:
    for words in ("smooth curve (BLS) was chosen", "The scores are kept as they are", "auc_lost"):
        assert words in run.printed


@after("docs/howto/classifier.md")
def _(run: Run) -> None:
    assert len(list(steps(run.text))) > 10
    assert (run.folder / "calibrator.json").exists()
    assert run.names["spam"].predict(["cheap money"]).tolist() == ["spam"]


@after("docs/howto/drift.md")
def _(run: Run) -> None:
    *_, last = steps(run.text.split("\n## Several classes\n")[1].split("\n## ")[0])
    assert "each class against the rest" in last.shown
    assert (run.folder / "calibrator-march.json").exists()


@after("docs/howto/engines.md")
@after("docs/howto/report.md")
def _(run: Run) -> None:
    assert any(step.shown for step in steps(run.text))


@after("docs/howto/export.md")
def _(run: Run) -> None:
    names = run.names
    assert len(names["rows"]) == 1000
    assert names["probabilities"].shape == (3, 2)
    assert names["risk"].risk(0.7) == names["c"].calibrate([0.7])[0]
    assert names["both"].graph.output
    assert (run.folder / "trees.onnx").stat().st_size > 10_000


@after("docs/howto/feature_calibration.md")
def _(run: Run) -> None:
    assert run.names["auto"].chosen_ == "features"


@after("docs/howto/grades.md")
def _(run: Run) -> None:
    assert sum(bool(step.shown) for step in steps(run.text)) >= 2


@after("docs/howto/monitor.md")
def _(run: Run) -> None:
    assert (run.folder / "monitor.png").exists()


@after("docs/howto/multiclass.md")
def _(run: Run) -> None:
    assert len(list(steps(run.text))) >= 6
    assert {path.suffix for path in run.folder.iterdir()} == {".json"}


@after("docs/howto/prior.md")
def _(run: Run) -> None:
    names, rate = run.names, run.names["rate"]
    assert names["f"].provenance["prior"][0]["target_rate"] == rate.rate
    assert str(rate).split(" among")[0] in run.text
    distance, new = names["distance"], names["c"].calibrate(names["new_scores"])
    near, limit = distance(names["p_old"], names["held_out"], new, rate.rate)
    far, other = distance(names["p_old"], names["held_out"], names["moved"], names["wrong"].rate)
    assert near < limit / 2
    assert far > 4 * other


@after("docs/howto/segments.md")
def _(run: Run) -> None:
    assert run.names["c"].calibrate([0.3], ["it"])[0] < 0.15
    assert run.names["c"].calibrate([0.3], ["de"])[0] > 0.25


@after("docs/understand/methods/acp.md")
def _(run: Run) -> None:
    assert len(list(steps(run.text))) >= 4
    assert run.names["same"] is True
    assert len(list(run.folder.iterdir())) == 2


@after("docs/understand/methods/similarity_binning.md")
def _(run: Run) -> None:
    assert len(list(steps(run.text))) >= 6
    assert sorted(path.suffix for path in run.folder.iterdir()) == [".json", ".npz"]


# --- the tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", marked())
def test_the_page_runs_as_pasted(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    run = Run(tmp_path, (ROOT / page).read_text(encoding="utf-8"))
    for step in steps(run.text):
        if step.reason is not None:
            continue
        where = f"{page}:{step.line}"
        code = compile("\n" * step.line + step.code, page, "exec")  # errors name the page's line
        out = io.StringIO()
        with warnings.catch_warnings(), contextlib.redirect_stdout(out):
            warnings.simplefilter("error" if page in QUIET else "ignore", CalibrationWarning)
            exec(code, run.names)
        printed = out.getvalue()
        if step.shown is not None or page not in TALKATIVE:
            assert told(printed) == told(step.shown or ""), where
        run.printed += printed
    AFTER.get(page, lambda run: None)(run)


def test_blocks_that_are_not_run_say_why():
    found = [step for blocks in pages().values() for step in blocks if step.reason is not None]
    assert len(found) == NOT_RUN_COUNT
    for step in found:
        compile(step.code, "page", "exec")


def test_the_lists_name_pages_that_are_there():
    assert {*LONG, *QUIET, *TALKATIVE, *AFTER} <= set(pages())


def test_a_page_is_read_as_it_is_shown():
    text = """\
1. Item

   ```python
   print(1)
   ```

```text
1
```
Words between.

<!-- not run: it takes a week -->
```python
slow()
```

```sh
make
```
"""
    first, second = steps(text)
    assert first == Step(3, "print(1)\n", "1\n", None)
    assert second == Step(13, "slow()\n", None, "it takes a week")
