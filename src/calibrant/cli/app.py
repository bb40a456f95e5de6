"""The commands. Each parses its options, calls a job, and prints what came of it."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer

from calibrant.cli import jobs, sources
from calibrant.cli.applying import apply, export, show
from calibrant.cli.checking import check, monitor
from calibrant.cli.console import Guarded, command, say, say_json, say_pairs, tell
from calibrant.cli.demo import demo
from calibrant.cli.fitting import fit
from calibrant.cli.judging import compare, evaluate, plot, report
from calibrant.fitting.registry import METHODS, OF_CLASSES
from calibrant.version import __version__

app = typer.Typer(
    cls=Guarded,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
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


for job in (fit, compare, report, apply, evaluate, plot, export, check, monitor):
    app.command()(job)


@app.command()
def methods(json: sources.Json = False) -> None:
    """List the methods of calibration.

    \b
    Examples:
      calibrant methods
      calibrant fit s.csv -s p -l y --method isotonic --param interpolation=centred
    """
    if json:
        say_json([_method(name) for name in METHODS | OF_CLASSES])
        return
    say_pairs({name: line for name, (_, line) in METHODS.items()})
    say()
    tell(
        "For several classes, with a column of scores for each, all of these (auto and "
        "temperature look at all columns, the others at each class against the rest), and:"
    )
    say()
    say_pairs({name: line for name, (_, line) in OF_CLASSES.items()})
    say()
    say("Parameters of one: ", command("calibrant methods --json"))


def _method(name: str) -> dict[str, Any]:
    several = name in OF_CLASSES
    cls, line = (METHODS | OF_CLASSES)[name]
    params = jobs.parameters(name, several=several)
    columns = "several" if several else "one or several"
    return {"name": name, "class": cls, "summary": line, "columns": columns, "params": params}


app.command()(show)
app.command()(demo)
