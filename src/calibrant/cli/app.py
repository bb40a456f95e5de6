"""The commands. Each parses its options, calls a job, and prints what came of it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant import __version__
from calibrant.cli import jobs
from calibrant.cli.console import (
    Guarded,
    command,
    patiently,
    say,
    say_json,
    say_pairs,
    show,
    tell,
)
from calibrant.cli.evidence import compare, report
from calibrant.cli.options import (
    Bins,
    CalibratorFile,
    Files,
    Folds,
    Json,
    LabelColumn,
    Level,
    MemoryLimit,
    PosLabel,
    ProbColumn,
    RawColumn,
    Replicates,
    ScoreColumn,
    Threads,
    Weighing,
    WeightColumn,
    session_for,
)
from calibrant.errors import InputError, ParameterError
from calibrant.registry import DEFAULT, METHODS

__all__ = ["app"]

app = typer.Typer(
    cls=Guarded,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
      calibrant compare scores.csv --score score --label churned

    Exit codes: 0 done, 1 unexpected, 2 bad input or usage, 130 interrupted.
    """


@app.command()
def fit(
    files: Files,
    score: ScoreColumn,
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
    folds: Folds = 5,
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
    with session_for("reading", json, threads, memory_limit) as session:
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


app.command()(compare)
app.command()(report)


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
    with session_for("applying", json, threads, memory_limit) as session:
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
    level: Level = 0.95,
    replicates: Replicates = 1000,
    weights: Weighing = "counts",
    json: Json = False,
    threads: Threads = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Measure how good probabilities are, and how good the scores behind them were.

    \b
    Examples:
      calibrant evaluate calibrated.csv --prob probability --label churned
      calibrant evaluate calibrated.csv -p probability -l churned --raw score --json
      calibrant evaluate c.csv -p p -l y --weight w --weights importance --level 0.9
    """
    from calibrant.metrics import evaluate as measure
    from calibrant.reports import in_words

    columns = jobs.Columns(prob, label, weight, pos_label)
    with session_for("reading", json, threads, memory_limit) as session:
        read, before = jobs.evaluate_files(session, files, columns, raw)
    wanted: dict[str, Any] = {"level": level or None, "replicates": replicates, "weights": weights}
    evaluation = patiently(
        lambda: measure(read.table, raw=before, bins=bins, **wanted), "measuring", json
    )
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
    with session_for("reading", json, threads, memory_limit) as session:
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
