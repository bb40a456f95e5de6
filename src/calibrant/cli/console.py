"""What the terminal shows: results on stdout; errors, notes and progress on stderr."""

from __future__ import annotations

import errno
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Self, TextIO, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text
from typer.core import TyperGroup

from calibrant.data.score_table import ScoreTable
from calibrant.diagrams.curve import Curve, reliability_curve
from calibrant.errors import (
    CalibrationWarning,
    InputError,
    MissingExtraError,
    ParameterError,
    in_options,
)
from calibrant.running import off_main_thread
from calibrant.solvers.threads import is_compiling

T = TypeVar("T")

WINDOWS = os.name == "nt"
#: a job that lasts longer than this many seconds gets a bar
PATIENCE = 1.0

NO_SPACE = (
    "No space left on device: the output was not written. Free some, or write to another disk."
)

#: what the user can mend, as opposed to a mistake of the program
EXPECTED = (InputError, ParameterError, MissingExtraError, OSError)


class Guarded(TyperGroup):
    """Turns expected errors and our warnings into one line on stderr each, in the words of the
    command line, and errors into an exit code; the others stay loud."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with _spoken(lambda: self.options_of(ctx)):
                return super().invoke(ctx)
        except EXPECTED as wrong:
            if isinstance(wrong, BrokenPipeError) or _is_lost_pipe(wrong):
                _drop_output()  # nothing to say to anyone
                raise typer.Exit(141) from wrong
            _complain("error: ", in_options(_in_one_line(wrong), self.options_of(ctx)))
            raise typer.Exit(2) from wrong
        except KeyboardInterrupt as stopped:
            _complain("interrupted: ", "no partial output was left behind.")
            raise typer.Exit(130) from stopped

    def options_of(self, ctx: Any) -> dict[str, str]:
        """The options of the command that runs, by the names that they have in Python."""
        running = self.get_command(ctx, ctx.invoked_subcommand or "")
        known = () if running is None else running.params
        return {one.name: one.opts[0] for one in known if one.name and one.opts[0].startswith("-")}


@contextmanager
def _spoken(options: Callable[[], Mapping[str, str]]) -> Iterator[None]:
    """Say our warnings like all else that deserves a look: no class, no file, no line."""

    def say_it(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, CalibrationWarning):
            warn(in_options(" ".join(str(message).split()), options()))
        else:
            former(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        former, warnings.showwarning = warnings.showwarning, say_it
        yield


def say(*parts: str | tuple[str, str]) -> None:
    """A line of plain and (text, style) parts on stdout; long paths are never broken."""
    Console(highlight=False).print(Text.assemble(*parts), soft_wrap=True)


def tell(*parts: str | tuple[str, str]) -> None:
    """Prose on stdout, broken between words on a terminal and not at all elsewhere."""
    _prose(Console(highlight=False), *parts)


def tell_advice(texts: Iterable[str]) -> None:
    """What deserves a look, a paragraph for each."""
    for text in texts:
        tell(("look: ", "bold yellow"), in_options(text, {}))


def show(renderable: Any, *, colour: bool = True) -> None:
    """A table or whatever rich can draw, on stdout, with its colours or without."""
    Console(highlight=False, no_color=None if colour else True).print(renderable)


def say_json(document: Mapping[str, Any] | list[Any]) -> None:
    """The machine's answer on stdout, and nothing else there."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def command(*words: str) -> tuple[str, str]:
    """A command to copy, as a part for `say`."""
    return " ".join(words), "bold cyan"


def say_pairs(rows: Mapping[str, str]) -> None:
    """Two aligned columns on stdout; a long path is never broken."""
    width = max(map(len, rows))
    for name, value in rows.items():
        say((name.ljust(width), "bold"), "  ", value)


def note(message: str) -> None:
    """Something that is worth knowing, on stderr."""
    _prose(Console(stderr=True, highlight=False), ("note: ", "bold"), message)


def warn(message: str) -> None:
    """Something that deserves a look, on stderr."""
    _complain("warning: ", message)


def _complain(what: str, message: str) -> None:
    _prose(Console(stderr=True, highlight=False), (what, "bold red"), message)


def _prose(console: Console, *parts: str | tuple[str, str]) -> None:
    console.print(Text.assemble(*parts), soft_wrap=not console.is_terminal)


def _is_lost_pipe(error: BaseException) -> bool:
    """Whether it is what Windows says when the reader of a pipe went away."""
    return (
        WINDOWS
        and isinstance(error, OSError)
        and error.errno == errno.EINVAL
        and error.filename is None
    )


def _drop_output() -> None:
    """Let what is still to be written to standard output go nowhere: its reader went away."""
    with suppress(OSError, ValueError):  # a stream that is no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _in_one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NO_SPACE
    if isinstance(error, OSError) and error.strerror:
        name = f"{error.filename}: " if error.filename else ""
        return f"{name}{error.strerror}."
    return " ".join(str(error).split())


def run_with_status(work: Callable[[], T], title: str, quiet: bool = False) -> T:
    """The result of long work. Ctrl-C works at once, and after two seconds a line on stderr says
    what is going on and for how long (on a terminal only). While kernels are compiled, it says that
    this is done once."""
    started = time.monotonic()
    with ExitStack() as shown:
        status: Any = None

        def show() -> None:
            nonlocal status
            seconds = time.monotonic() - started
            if quiet or seconds < 2 * PATIENCE or not sys.stderr.isatty():
                return
            if status is None:
                status = shown.enter_context(Console(stderr=True).status(title))
            now = "compiling, once" if is_compiling() else title
            status.update(f"{now}: {seconds:.0f} s")

        return off_main_thread(work, meanwhile=show, every=0.5)


class Bar:
    """A progress bar on stderr, for people only and for long jobs only.

    It is called with the fraction done, and appears once the job has taken a second.
    """

    def __init__(self, title: str, quiet: bool = False) -> None:
        self.title = title
        self.wanted = not quiet and sys.stderr.isatty()
        self.started = time.monotonic()
        self.progress: Progress | None = None

    def __call__(self, done: float) -> None:
        if not self.wanted or time.monotonic() - self.started < PATIENCE:
            return
        if self.progress is None:
            self.progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f} %"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self.progress.add_task(self.title, total=1.0)
            self.progress.start()
        self.progress.update(self.progress.task_ids[0], completed=done)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.progress is not None:
            self.progress.stop()


# --- A small reliability diagram made of letters --------------------------------------------------


WIDTH, HEIGHT = 49, 13
#: the curves' letters: before, after, both in one place
BEFORE, AFTER, BOTH = "o", "x", "*"
#: where the axes may end
ENDS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)


def reliability_text(after: ScoreTable, before: ScoreTable | None = None, bins: int = 10) -> str:
    """Mean prediction (across) against fraction of positives (up), in bins of equal mass.

    ``o`` is before, ``x`` after, ``*`` both; the dots are where they should be.

    >>> t = ScoreTable.from_counts([0.1, 0.5, 0.9], [90, 50, 10], [10, 50, 90])
    >>> print(reliability_text(t).splitlines()[0].replace(" ", ""))
    1.0│···
    """
    curves = {AFTER: reliability_curve(after, bins=bins, binning="mass", band=None)}
    before = None if before is None else before.as_probabilities()  # points are none
    if before is not None:
        old = reliability_curve(before, bins=bins, binning="mass", band=None)
        curves = {BEFORE: old, **curves}
    end = _end([*curves.values()])
    grid = [[" "] * WIDTH for _ in range(HEIGHT)]
    for column in range(WIDTH):
        row = round(column / (WIDTH - 1) * (HEIGHT - 1))
        grid[row][column] = "·"
    for letter, curve in curves.items():
        for x, y in zip(curve.mean_p, curve.fraction, strict=True):
            row, column = _place(y, HEIGHT, end), _place(x, WIDTH, end)
            taken = grid[row][column] in curves and grid[row][column] != letter
            grid[row][column] = BOTH if taken else letter
    digits = 1 - math.floor(math.log10(end)) if end < 1 else 1
    marks = {0: 0.0, (HEIGHT - 1) // 2: end / 2, HEIGHT - 1: end}
    wide = max(len(f"{mark:.{digits}f}") for mark in marks.values()) + 1
    lines = [
        f"{_mark(marks, row, digits):>{wide}} │{''.join(grid[row])}".rstrip()
        for row in reversed(range(HEIGHT))
    ]
    lines.append(f"{'':>{wide}} └{'─' * WIDTH}")
    foot = f"{0.0:.{digits}f}".ljust(WIDTH // 2 - 1) + f"{end / 2:.{digits}f}"
    lines.append(f"{'':>{wide}}  {foot.ljust(WIDTH - digits - 2)}{end:.{digits}f}")
    names = (
        f"{BEFORE} before, {AFTER} after, {BOTH} both" if before is not None else f"{AFTER} after"
    )
    lines.append(f"{'':>{wide}}  → predicted   ↑ share of positives   ({names})")
    return "\n".join(lines)


def _end(curves: list[Curve]) -> float:
    """The least end of the axes that leaves nothing outside."""
    largest = max(max(float(c.mean_p.max()), float(c.fraction.max())) for c in curves)
    return min((end for end in ENDS if end >= largest), default=1.0)


def _place(value: float, cells: int, end: float) -> int:
    return min(max(round(float(value) / end * (cells - 1)), 0), cells - 1)


def _mark(marks: dict[int, float], row: int, digits: int) -> str:
    return f"{marks[row]:.{digits}f}" if row in marks else ""
