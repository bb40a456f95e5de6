"""The commands by name: each is imported when it runs."""

from __future__ import annotations

import copy
import importlib
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from calibrant.cli.console import Guarded, say
from calibrant.version import __version__

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


class Commands(Guarded):
    """The commands; the list of them imports none."""

    listed = False

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
        alone.command(cmd_name, context_settings=SETTINGS)(getattr(page, cmd_name))
        self.commands[cmd_name] = made = typer.main.get_command(alone)
        return made

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        lines = copy.copy(self)
        lines.listed = True
        super(Commands, lines).format_help(ctx, formatter)


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings=SETTINGS,
)


@cache
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
