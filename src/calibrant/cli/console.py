"""What the terminal shows: results on stdout; errors, notes and progress on stderr."""

from __future__ import annotations

import errno
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Self, TextIO, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text
from typer.core import TyperGroup

from calibrant.errors import (
    CalibrationWarning,
    InputError,
    MissingExtraError,
    ParameterError,
    as_command_options,
)
from calibrant.running import off_main_thread
from calibrant.solvers.threads import is_compiling

T = TypeVar("T")

WINDOWS = os.name == "nt"
#: classes or columns that a line or a message shows
SHOWN = 8
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
            _complain("error: ", as_command_options(_in_one_line(wrong), self.options_of(ctx)))
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
            warn(as_command_options(" ".join(str(message).split()), options()))
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
        tell(("look: ", "bold yellow"), as_command_options(text, {}))


def show(renderable: Any, *, colour: bool = True) -> None:
    """A table or whatever rich can draw, on stdout, with its colours or without."""
    Console(highlight=False, no_color=None if colour else True).print(renderable)


def say_json(document: Mapping[str, Any] | list[Any]) -> None:
    """The machine's answer on stdout, and nothing else there."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def some_of(words: Sequence[str], more: str = "") -> str:
    """Words in a row: only the first of many, with ``more`` behind the dots.

    >>> some_of(["a", "b"]), some_of("abcdefghij", " (10)")
    ('a, b', 'a, b, c, d, e, f, g, h, … (10)')
    """
    return ", ".join(words[:SHOWN]) + (f", …{more}" if len(words) > SHOWN else "")


def command(*words: str) -> tuple[str, str]:
    """A command to copy, as a part for `say`."""
    return " ".join(words), "bold cyan"


def say_pairs(rows: Mapping[str, str]) -> None:
    """Two aligned columns on stdout; a long path is never broken."""
    width = max(map(len, rows))
    for name, value in rows.items():
        say((name.ljust(width), "bold"), "  ", value)


def tell_first(look: Any, names: Any) -> str:
    """Say what must be known before anything else, and return it; nothing where all is well."""
    first: str = "" if look is None else look.headline(names)
    if first:
        tell((first, "bold yellow"))
    return first


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
