"""The commands by name, the words of their errors, and what the terminal shows.

Results go to stdout; errors, notes and progress to stderr. Each command is imported when it runs.
"""

from __future__ import annotations

import copy
import errno
import functools
import importlib
import inspect
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, ClassVar, Self, TextIO, TypeVar, get_args, get_type_hints

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from calibrant.errors import (
    CalibrationWarning,
    InputError,
    MissingExtraError,
    ParameterError,
    shell_quoted,
)
from calibrant.outputs import NO_SPACE
from calibrant.result_tables import PrintsAsTable, ResultTable
from calibrant.running import off_main_thread
from calibrant.version import __version__

T = TypeVar("T")

#: the page of each command, and the first line of its help
COMMANDS = {
    "fit": ("fitting", "Learn a calibrator from scores and labels, and say what it improves."),
    "compare": (
        "judging",
        "Judge methods on rows that they have not seen, beside no calibration at all.",
    ),
    "report": (
        "judging",
        "Write one page: the verdict, the leaderboard, diagrams, measures, advice, how to apply.",
    ),
    "apply": (
        "applying",
        "Add a column of calibrated probabilities, or one for each class, to files of any size.",
    ),
    "evaluate": (
        "judging",
        "Measure how good probabilities are, and how good the scores behind them were.",
    ),
    "plot": (
        "judging",
        "Draw what was predicted against what happened, or what acting on it is worth.",
    ),
    "export": (
        "applying",
        "Write a calibrator as SQL, ONNX, plain Python or JSON, for systems without calibrant.",
    ),
    "check": (
        "checking",
        "Ask whether scores still mean what they meant, and what to do if not.",
    ),
    "monitor": (
        "checking",
        "Watch probabilities day after day, with one false alarm rate for all time.",
    ),
    "methods": ("jobs", "List the methods of calibration."),
    "show": (
        "applying",
        "Print what a calibrator file holds, or which score has a probability.",
    ),
    "demo": ("demo", "Run the whole job on a bundled example: fit, apply, evaluate, draw, report."),
}
#: of all commands
SETTINGS = {"help_option_names": ["-h", "--help"]}
#: what the user can mend, as opposed to a mistake of the program
EXPECTED = (InputError, ParameterError, MissingExtraError, OSError)


class Commands(TyperGroup):
    """The commands; the list of them imports none.

    Expected errors and our warnings become one line on stderr each, in the words of the command
    line, and errors an exit code; the others stay loud.
    """

    listed = False
    #: the words that were typed, for `typed_again`
    typed: ClassVar[list[str]] = []

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        lines = {name: line for name, (_, line) in COMMANDS.items()}
        self.commands.update({name: TyperCommand(name, help=line) for name, line in lines.items()})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        known = self.commands.get(cmd_name)
        if known is None or known.callback is not None or self.listed:
            return known
        page = importlib.import_module(f"calibrant.cli.{COMMANDS[cmd_name][0]}")
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        command = with_shared_options(getattr(page, cmd_name))
        alone.command(cmd_name, context_settings=SETTINGS)(command)
        self.commands[cmd_name] = made = typer.main.get_command(alone)
        return made

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        Commands.typed = list(args)
        return super().make_context(info_name, args, parent, **extra)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        lines = copy.copy(self)
        lines.listed = True
        super(Commands, lines).format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        def in_words(text: str) -> str:
            running = self.get_command(ctx, ctx.invoked_subcommand or "")
            known = () if running is None else running.params
            named = {one.name: one.opts[0] for one in known if one.name}
            options = {name: word for name, word in named.items() if word.startswith("-")}
            return as_command_options(text, options)

        try:
            with _warnings_in_words(in_words):
                return super().invoke(ctx)
        except EXPECTED as wrong:
            if _is_lost_pipe(wrong):  # nothing to say to anyone
                with suppress(OSError, ValueError):  # a stream that is no file
                    nowhere = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(nowhere, sys.stdout.fileno())
                    os.close(nowhere)
                raise typer.Exit(141) from wrong
            _complain("error: ", in_words(_in_one_line(wrong)))
            raise typer.Exit(2) from wrong
        except KeyboardInterrupt as stopped:
            _complain("interrupted: ", "no partial output was left behind.")
            raise typer.Exit(130) from stopped


def with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer takes it: a parameter whose type is a dataclass stands for its fields,
    an option each. Words beside the type name fields that are no options of this command."""
    shape = inspect.signature(command, eval_str=True)
    shared: dict[str, tuple[Any, list[str]]] = {}
    parameters = []
    for one in shape.parameters.values():
        kind, *left_out = get_args(one.annotation) or (one.annotation,)
        if not is_dataclass(kind):
            parameters.append(one)
            continue
        hints = get_type_hints(kind, include_extras=True)
        options = [field for field in fields(kind) if field.name not in left_out]
        shared[one.name] = kind, [field.name for field in options]
        parameters += [
            inspect.Parameter(
                field.name, one.kind, default=field.default, annotation=hints[field.name]
            )
            for field in options
        ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, (kind, names) in shared.items():
            given[name] = kind(**{option: given.pop(option) for option in names})
        command(**given)

    run.__annotations__ = {one.name: one.annotation for one in parameters}
    vars(run)["__signature__"] = shape.replace(parameters=parameters)
    return run


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings=SETTINGS,
)


@functools.cache
def parser() -> Any:
    """What reads the words of a command line and runs the command; made once in a process."""
    return typer.main.get_command(app)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"calibrant {__version__}")
        raise typer.Exit


@app.callback()
def calibrant(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Turn any classifier's scores into probabilities people can act on.

    \b
    Examples:
      calibrant demo
      calibrant fit scores.csv --score score --label churned -o calibrator.json
      calibrant fit scores.csv --score 'p_*' --label kind
      calibrant apply calibrator.json new.csv -o calibrated.csv
      calibrant evaluate calibrated.csv --prob probability --label churned
      calibrant compare scores.csv --score score --label churned
      calibrant export calibrator.json --to sql --dialect postgres
      calibrant check new.csv --calibrator calibrator.json --label churned
      calibrant monitor state.json today.csv --calibrator calibrator.json --label churned

    Exit codes: 0 done, 1 unexpected, 2 bad input or usage, 3 drift found (check, monitor
    --exit-code), 130 interrupted, 141 the reader of the output went away.
    """


# --- errors and warnings in words ----------------------------------------------------------------

WINDOWS = os.name == "nt"


def _is_lost_pipe(error: BaseException) -> bool:
    """Whether the reader of the output went away, also in the words of Windows."""
    return isinstance(error, BrokenPipeError) or (
        WINDOWS
        and isinstance(error, OSError)
        and error.errno == errno.EINVAL
        and error.filename is None
    )


def _in_one_line(problem: object) -> str:
    if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return NO_SPACE
    if isinstance(problem, OSError) and problem.strerror:
        name = f"{problem.filename}: " if problem.filename else ""
        return f"{name}{problem.strerror}."
    return " ".join(str(problem).split())


@contextmanager
def _warnings_in_words(in_words: Callable[[str], str]) -> Iterator[None]:
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
            warn(in_words(_in_one_line(message)))
        else:
            former(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        former, warnings.showwarning = warnings.showwarning, say_it
        yield


# --- what the terminal shows ----------------------------------------------------------------------

#: classes or columns that a line or a message shows
SHOWN = 8
#: a job that lasts longer than this many seconds gets a bar
PATIENCE = 1.0


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
    if isinstance(renderable, PrintsAsTable):
        renderable = InOptions(renderable)
    Console(highlight=False, no_color=None if colour else True).print(renderable)


class InOptions(PrintsAsTable):
    """A result whose lines below the table name options, not arguments of Python."""

    def __init__(self, result: PrintsAsTable) -> None:
        self.result = result

    def _table(self) -> ResultTable:
        table = self.result._table()
        options = {"measures": "--measures"}
        return table._replace(below=[as_command_options(line, options) for line in table.below])


def say_json(document: Mapping[str, Any] | list[Any]) -> None:
    """The machine's answer on stdout, and nothing else there."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def some_of(words: Sequence[str], more: str = "") -> str:
    """Words in a row: only the first of many, with ``more`` behind the dots.

    >>> some_of(["a", "b"]), some_of("abcdefghij", " (10)")
    ('a, b', 'a, b, c, d, e, f, g, h, … (10)')
    """
    return ", ".join(words[:SHOWN]) + (f", …{more}" if len(words) > SHOWN else "")


def brief(text: str, most: int) -> str:
    """The beginning of a text that is too long.

    >>> brief("abcdef", 4), brief("abcd", 4)
    ('abc…', 'abcd')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def command(*words: str) -> tuple[str, str]:
    """A command to copy, as a part for `say`."""
    return " ".join(words), "bold cyan"


def typed_again(*more: str) -> str:
    """The command as it was typed, with more words."""
    return " ".join(map(shell_quoted, ("calibrant", *Commands.typed, *more)))


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


def is_compiling() -> bool:
    """Whether another thread compiles a kernel, which happens at its first use only.

    This does not load numba.
    """
    kernels = re.compile(r"calibrant\..*\._kernel\w*")
    loaded = [module for name, module in list(sys.modules.items()) if kernels.fullmatch(name)]
    values = (value for module in loaded for value in list(vars(module).values()))
    return any(value.is_compiling for value in values if hasattr(value, "py_func"))


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


# --- Messages of the library in the words of a command --------------------------------------------


#: an argument as messages write it: a name, and a word in quotes, a number or a truth value; files
#: and folders such as level=3.csv are none
_ARGUMENT = re.compile(
    r"""(?<![\w/'"=-])([a-z]\w*)=(?:"([^"]*)"|'([^']*)'|(True|False|[0-9]+(?:\.[0-9]+)?)(?![\w/]|\.\w))"""
)
#: a call that ends an advice of the library, which nobody can make on the command line
_CALL = re.compile(r""": calibrant\.\w+\([^()]*\)(?=[.;]|$)""")
#: an argument beside which the message says the option
_BESIDE = re.compile(r"\b[a-z]\w*=\S+ \((?:on the command line )?(--[^()]+)\)")


def as_command_options(message: str, options: Mapping[str, str]) -> str:
    """A message of the library with the options of a command in place of Python's arguments.

    ``options`` are those of the command, by the names of the arguments. Other arguments stay.

    >>> as_command_options('say on_range="clip", or fit anew.', {"on_range": "--on-range"})
    'say --on-range clip, or fit anew.'
    >>> as_command_options("cv must be at least 2, but 1 came.", {"cv": "--cv"})
    '--cv must be at least 2, but 1 came.'
    """

    def option(found: re.Match[str]) -> str:
        name, *values = found.groups()
        if name not in options:
            return found[0]
        value = next(value for value in values if value is not None)
        return options[name] if value == "True" else f"{options[name]} {shell_quoted(value)}"

    said = _CALL.sub("", _BESIDE.sub(r"\1", message))
    said = _ARGUMENT.sub(option, said)
    first, blank, rest = said.partition(" ")
    if first in options and rest.startswith("must "):
        said = f"{options[first]}{blank}{rest}"
    return said
