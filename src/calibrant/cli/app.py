"""The commands. Each parses its options, calls a job, and prints what came of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant import __version__
from calibrant.cli import jobs
from calibrant.cli.console import (
    Bar,
    Guarded,
    command,
    patiently,
    say,
    say_json,
    say_pairs,
    show,
    tell,
)
from calibrant.errors import InputError, ParameterError
from calibrant.registry import DEFAULT, METHODS

if TYPE_CHECKING:
    from calibrant.engines.duckdb import Session

__all__ = ["app"]

app = typer.Typer(
    cls=Guarded,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

# --- options that several commands share --------------------------------------------------------

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="CSV, TSV, JSON lines (also .gz) or Parquet; several, or globs in quotes.",
    ),
]
CalibratorFile = Annotated[
    Path, typer.Argument(metavar="CALIBRATOR", show_default=False, help="File that fit wrote.")
]
LabelColumn = Annotated[
    str, typer.Option("--label", "-l", metavar="COL", help="Column of labels, any two values.")
]
ProbColumn = Annotated[
    str, typer.Option("--prob", "-p", metavar="COL", help="Column of probabilities.")
]
RawColumn = Annotated[
    str | None,
    typer.Option("--raw", metavar="COL", help="Column of scores before calibration, to compare."),
]
WeightColumn = Annotated[
    str | None, typer.Option("--weight", "-w", metavar="COL", help="Column of weights ≥ 0.")
]
PosLabel = Annotated[
    str | None,
    typer.Option(metavar="LABEL", help="What a high score means; default: the larger label."),
]
Bins = Annotated[int, typer.Option(min=1, help="Bins of equal width for ECE and MCE.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Threads = Annotated[
    int | None, typer.Option(min=1, show_default=False, help="Cores to use; default: all.")
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Such as 2GB; what does not fit is spilled to disk."),
]


@contextmanager
def _session(title: str, quiet: bool, threads: int | None, memory: str | None) -> Iterator[Session]:
    """A database for one job, with a progress bar."""
    from calibrant.engines.duckdb import Session

    with (
        Bar(title, quiet) as bar,
        Session(threads=threads, memory_limit=memory, progress=bar) as session,
    ):
        yield session


def _version(wanted: bool) -> None:
    if wanted:
        say(f"calibrant {__version__}")
        raise typer.Exit


@app.callback()
def calibrant(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it and exit.")
    ] = False,
) -> None:
    """Turn any classifier's scores into probabilities people can act on.

    \b
    Examples:
      calibrant demo
      calibrant fit scores.csv --score score --label churned -o calibrator.json
      calibrant apply calibrator.json new.csv -o calibrated.csv
      calibrant evaluate calibrated.csv --prob probability --label churned

    Exit codes: 0 done, 1 unexpected, 2 bad input or usage, 130 interrupted.
    """


@app.command()
def fit(
    files: Files,
    score: Annotated[
        str, typer.Option("--score", "-s", metavar="COL", help="Column of scores of any kind.")
    ],
    label: LabelColumn,
    weight: WeightColumn = None,
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="NAME", help="See: calibrant methods.")
    ] = DEFAULT,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Parameter of the method; may be repeated."),
    ] = None,
    pos_label: PosLabel = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="JSON", help="Where the calibrator goes.")
    ] = Path("calibrator.json"),
    folds: Annotated[
        int, typer.Option(min=0, help="Folds of the estimate for new rows; 0: no estimate.")
    ] = 5,
    plot: Annotated[
        Path | None, typer.Option(metavar="PNG", help="Draw the reliability before and after.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="HTML", help="Write a page about what improved.")
    ] = None,
    json: Json = False,
    threads: Threads = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Learn a calibrator from scores and labels, and say what it improves.

    \b
    Examples:
      calibrant fit scores.csv --score p --label y
      calibrant fit 'day-*.parquet' -s margin -l bought --pos-label yes -o c.json
      calibrant fit s.csv -s p -l y -m isotonic --param kind=centred --plot r.png

    What it prints is out of fold: no row is judged by a calibrator that has seen it.
    """
    from calibrant.cli import results

    jobs.check_output(output)
    jobs.check_output(plot, jobs.PICTURES)
    jobs.check_output(report, (".html", ".htm"))
    if not folds and (plot or report):
        raise ParameterError("a plot or report shows out-of-fold results: folds must not be 0.")
    calibrator = jobs.make_calibrator(method, param or [])
    columns = jobs.Columns(score, label, weight, pos_label)
    jobs.check_folds(folds)
    with _session("reading", json, threads, memory_limit) as session:
        read = jobs.read_files(session, files, columns)
    cells = f"{len(read.table):,} distinct scores"
    result = patiently(
        lambda: jobs.fit_read(read, calibrator, folds=folds), f"fitting {method} to {cells}", json
    )
    written = {"calibrator": output, "plot": plot, "report": report}
    results.write_fit(result, written)
    if json:
        say_json(results.fit_document(result, written))
    else:
        results.print_fit(result, written)


@app.command()
def apply(
    calibrator: CalibratorFile,
    files: Files,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT", help="File to write: .csv, .tsv, .jsonl or .parquet."
        ),
    ],
    score: Annotated[
        str | None,
        typer.Option(
            "--score", "-s", metavar="COL", help="Column of scores; default: as in the fit."
        ),
    ] = None,
    into: Annotated[
        str, typer.Option(metavar="COL", help="Name of the new column.")
    ] = "probability",
    on_missing: Annotated[
        str, typer.Option(metavar="error|null", help="What to do with rows without a score.")
    ] = "error",
    overwrite_column: Annotated[
        bool, typer.Option("--overwrite-column", help="Let it replace a column of that name.")
    ] = False,
    json: Json = False,
    threads: Threads = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Add a column of calibrated probabilities to files of any size.

    \b
    Examples:
      calibrant apply calibrator.json new.csv -o calibrated.csv
      calibrant apply c.json 'day-*.parquet' -o all.parquet --into p_churn

    Rows keep their order and all other columns their values.
    """
    from calibrant.engines.duckdb import apply_file

    fitted = jobs.load_map(calibrator)
    column = score or fitted.provenance.get("score_column")
    if not isinstance(column, str):
        raise InputError(
            f"{calibrator} does not know the column of scores. Name it with --score COL."
        )
    jobs.check_output(output)
    with _session("applying", json, threads, memory_limit) as session:
        rows = apply_file(
            fitted,
            files,
            output,
            score=column,
            into=into,
            on_missing=on_missing,
            overwrite_column=overwrite_column,
            session=session,
        )
    if json:
        document = {"output": str(output), "rows": rows, "score": column, "column": into}
        say_json({**document, "pos_label": fitted.pos_label})
    else:
        say(f"{rows:,} rows written to ", (str(output), "bold"))
        say(f"Column {into!r} is the probability of {fitted.pos_label!r}.")


@app.command()
def evaluate(
    files: Files,
    prob: ProbColumn,
    label: LabelColumn,
    weight: WeightColumn = None,
    raw: RawColumn = None,
    pos_label: PosLabel = None,
    bins: Bins = 10,
    json: Json = False,
    threads: Threads = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Measure how good probabilities are, and how good the scores behind them were.

    \b
    Examples:
      calibrant evaluate calibrated.csv --prob probability --label churned
      calibrant evaluate calibrated.csv -p probability -l churned --raw score --json
    """
    from calibrant.metrics import evaluate as measure
    from calibrant.report import in_words

    columns = jobs.Columns(prob, label, weight, pos_label)
    with _session("reading", json, threads, memory_limit) as session:
        read, before = jobs.evaluate_files(session, files, columns, raw)
    evaluation = measure(read.table, raw=before, bins=bins)
    if json:
        labels = {"classes": list(read.classes), "pos_label": read.pos_label}
        say_json({**evaluation.to_dict(), **read.facts, **labels})
        return
    show(evaluation)
    tell(in_words(evaluation))


@app.command()
def plot(
    files: Files,
    prob: ProbColumn,
    label: LabelColumn,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Picture: .png, .svg or .pdf.")
    ],
    weight: WeightColumn = None,
    raw: RawColumn = None,
    pos_label: PosLabel = None,
    bins: Bins = 10,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the picture.")] = None,
    json: Json = False,
    threads: Threads = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Draw a reliability diagram: what was predicted against what happened.

    \b
    Examples:
      calibrant plot calibrated.csv --prob probability --label churned -o r.png
      calibrant plot calibrated.csv -p probability --raw score -l churned -o r.svg
    """
    jobs.check_output(output, jobs.PICTURES)
    columns = jobs.Columns(prob, label, weight, pos_label)
    with _session("reading", json, threads, memory_limit) as session:
        read, before = jobs.evaluate_files(session, files, columns, raw)
    kind = output.suffix[1:].lower()
    jobs.write(output, jobs.draw(read.table, before, format=kind, bins=bins, title=title))
    if json:
        say_json({"output": str(output), **read.facts})
    else:
        say("Reliability diagram written to ", (str(output), "bold"))


@app.command()
def methods(json: Json = False) -> None:
    """List the methods of calibration.

    \b
    Examples:
      calibrant methods
      calibrant fit s.csv -s p -l y --method isotonic --param kind=centred
    """
    if json:
        say_json([_method(name) for name in METHODS])
        return
    say_pairs({name: line for name, (_, _, line) in METHODS.items()})
    say()
    say("Parameters of one: ", command("calibrant methods --json"))


def _method(name: str) -> dict[str, Any]:
    _, cls, line = METHODS[name]
    return {"name": name, "class": cls, "summary": line, "params": jobs.parameters(name)}


@app.command(name="show")
def show_file(calibrator: CalibratorFile, json: Json = False) -> None:
    """Print what a calibrator file holds.

    \b
    Examples:
      calibrant show calibrator.json
    """
    from calibrant.cli import results
    from calibrant.files import load
    from calibrant.fitted import Fitted

    fitted = load(calibrator)
    if json:
        say_json(fitted.to_dict() if isinstance(fitted, Fitted) else fitted.to_parts()[0])
        return
    say_pairs(results.facts(fitted))
    if not isinstance(fitted, Fitted):
        return
    say()
    say(
        "Apply it: ", command("calibrant apply", shlex.quote(str(calibrator)), "NEW.csv -o OUT.csv")
    )


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where its files go.")] = Path(
        "calibrant-demo"
    ),
    json: Json = False,
) -> None:
    """Run the whole job on a bundled example: fit, apply, evaluate, draw, report.

    \b
    Examples:
      calibrant demo
      calibrant demo /tmp/look
    """
    from calibrant.cli.demo import run

    run(folder, json)
