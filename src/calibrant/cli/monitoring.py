"""The command for a job that runs every night: a monitor whose state is a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.cli import options, reading
from calibrant.cli.calibrator_files import load_map, refuse_swapped
from calibrant.cli.checking import CHANGED, ExitCode, fitted_source
from calibrant.cli.console import say, say_json, tell
from calibrant.cli.paths import PAGES, PICTURES, OutputOption, check_places
from calibrant.cli.sources import FileSource, engine_options
from calibrant.cli.state_lock import locked
from calibrant.data.segment_keys import JOIN_COLUMNS
from calibrant.engines.files.data_files import is_calibrator
from calibrant.engines.rows_of_files import FileTable
from calibrant.errors import ParameterError
from calibrant.estimators.fitted import Fitted
from calibrant.outputs import follow, write_whole
from calibrant.shell_words import quoted

if TYPE_CHECKING:
    from calibrant.monitor import Monitor


#: how many columns a message names
SHOWN = 5

StateFile = Annotated[
    Path,
    typer.Argument(
        metavar="STATE", show_default=False, help="File of the monitor; made if it is not there."
    ),
]
WatchedFile = Annotated[
    Path | None,
    typer.Option(
        "--calibrator", "-c", metavar="JSON", help="Calibrator whose probabilities are watched."
    ),
]
ProbabilityColumn = Annotated[
    str | None,
    typer.Option(
        "--prob", "-p", metavar="COL", help="Column of probabilities, in place of scores."
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        parser=options.read_share,
        help="New monitor: chance of a false alarm, ever; 0.05.",
        show_default=False,
    ),
]
Least = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        parser=options.read_share,
        help="New monitor: changes of a probability below this are none; 0.",
        show_default=False,
    ),
]
When = Annotated[
    str, typer.Option(metavar="TEXT", help="A name for these rows, such as their day.")
]
ChartFile = Annotated[
    Path | None,
    typer.Option(metavar="PNG", help="Draw the shares observed and expected, and the evidence."),
]
PageFile = Annotated[
    Path | None,
    typer.Option(metavar="HTML", help="Write a page: alarm, evidence, calibration over time."),
]


def monitor(
    state: StateFile,
    files: options.Files,
    calibrator: WatchedFile = None,
    score: options.FittedScore = None,
    prob: ProbabilityColumn = None,
    label: options.FittedLabel = None,
    weight: options.WeightColumn = None,
    segment: options.SegmentColumn = None,
    pos_label: options.PosLabel = None,
    alpha: Alpha = None,
    least: Least = None,
    when: When = "",
    plot: ChartFile = None,
    report: PageFile = None,
    exit_code: ExitCode = False,
    decimal: options.DecimalMark = None,
    missing: options.MissingRows = "error",
    format: options.StreamFormat = None,
    cells: options.Cells = "auto",
    engine: options.EngineName = "duckdb",
    master: options.Master = None,
    json: options.Json = False,
    threads: options.Threads = None,
    memory_limit: options.MemoryLimit = None,
) -> None:
    """Watch probabilities day after day, with one false alarm rate for all time.

    \b
    Examples:
      calibrant monitor state.json monday.csv --prob probability --label churned
      calibrant monitor state.json tuesday.csv --prob probability --label churned --exit-code
      calibrant monitor state.json 'day-7-*.parquet' -c calibrator.json --when 2026-03-07
      calibrant monitor state.json wednesday.csv -p probability -l churned --report monitor.html

    Give it each row once, when its label has come. The state is replaced whole, after
    all went well, and one command at a time works on it. With --exit-code the command
    ends with 3 from the alarm on.
    """
    watch = f"monitor {quoted(str(state))} {{files}} --calibrator {{calibrator}}"
    refuse_swapped(calibrator, files, watch)
    if is_calibrator(state):
        raise ParameterError(
            f"STATE must be a file of the monitor, which it makes, but {state} is a calibrator. "
            f"Name that one with --calibrator {quoted(str(state))}."
        )
    written = {"--plot": OutputOption(plot, PICTURES), "--report": OutputOption(report, PAGES)}
    check_places(written, [*files, calibrator, state])
    check_places({"STATE": OutputOption(state)}, [*files, calibrator])
    fitted = None if calibrator is None else load_map(calibrator)
    _check_scores(score, calibrator, prob)
    column = _one_segment(segment)
    of_scores = fitted is not None and prob is None
    place = engine_options(decimal, missing, format, threads, memory_limit, engine, master)
    option, words = ("--score", score or []) if of_scores else ("--prob", [prob or ""])
    source = FileSource(files, words[:1], label or "", weight, pos_label, column, option=option)
    source = fitted_source(fitted, replace(source, place=place, quiet=json))
    with locked(follow(state)):
        watching = _begin(state, fitted, column, alpha, least, prob)
        with reading.opened(source) as (opened, known):
            wanted = options.read_cells(cells)
            tables = reading.read_segments(opened, known, wanted) if segment else None
            read = tables.read if tables else reading.read_table(opened, known, wanted)
        watching.update_table(
            read.table,
            scores=of_scores,
            segments=tables.by_key if tables else None,
            when=when,
            classes=read.classes,
            pos_label=read.pos_label,
        )
        if plot is not None:
            from calibrant.diagrams.draw import monitor_diagram, render

            picture = render(monitor_diagram(watching), plot.suffix[1:].lower())
            write_whole(plot, picture)
        if report is not None:
            from calibrant.reports.monitor_make import monitor_report

            monitor_report(watching, saved_as=str(state), output=report)
        watching.save(state)  # last: what failed can be run again
    _tell(watching, state, read, {"plot": plot, "report": report}, json)
    if exit_code and watching.alarm is not None:
        raise typer.Exit(CHANGED)


def _check_scores(score: list[str] | None, calibrator: Path | None, prob: str | None) -> None:
    """Refuse scores that would not be read."""
    if score and len(score) > 1:
        raise ParameterError(
            f"a monitor watches one column of scores, but {len(score)} came: "
            f"{', '.join(score[:SHOWN])}. Name one; several columns need a monitor each."
        )
    if score and calibrator is None:
        raise ParameterError(
            "--score goes with --calibrator, which makes probabilities of it. Name a column of "
            "probabilities with --prob COL, or add --calibrator JSON."
        )
    if score and prob is not None:
        raise ParameterError(
            "--prob stands in place of --score, and the calibrator is not asked then. Leave one of "
            "them out."
        )


def _one_segment(words: list[str] | None) -> str | None:
    """The column of segments; a monitor has one chance of a false alarm for each, not for parts of
    parts."""
    if words and len(words) > 1:
        raise ParameterError(
            f"a monitor watches segments of one column, but {len(words)} came: it shares its "
            f"chance of a false alarm between segments, and knows no parts of parts. {JOIN_COLUMNS}"
        )
    return words[0] if words else None


def _begin(
    state: Path,
    fitted: Fitted | None,
    segment: str | None,
    alpha: float | None,
    least: float | None,
    prob: str | None,
) -> Monitor:
    """The monitor of the file, or a new one."""
    from calibrant.monitor import Monitor

    if not state.exists():
        return Monitor(
            fitted,
            alpha=0.05 if alpha is None else alpha,
            least=0.0 if least is None else least,
            by_segment=segment is not None,
        )
    for name, value in (("--alpha", alpha), ("--least", least)):
        if value is not None:
            raise ParameterError(
                f"{name} is for a new monitor, but {state} is there already. Leave it out, or name "
                "another file."
            )
    watching = Monitor.load(state, fitted)
    if watching.to_dict()["fingerprint"] and fitted is None and not prob:
        raise ParameterError(
            f"{state} watches a calibrator: name it with --calibrator FILE, or a column of its "
            "probabilities with --prob COL. Scores must not be taken for probabilities."
        )
    return watching


def _tell(
    watching: Monitor,
    state: Path,
    read: FileTable,
    written: Mapping[str, Path | None],
    json: bool,
) -> None:
    from calibrant.monitor.monitor_reading import in_words, taken

    if json:
        counts = {"batches": watching.batches, "rows_in_all": watching.rows, "state": str(state)}
        places = {name: str(path) for name, path in written.items() if path is not None}
        say_json({**watching.reading.to_dict(), **counts, **places, **reading.file_facts(read)})
        return
    say(f"{taken(watching.batches, watching.rows)} so far in ", (str(state), "bold"))
    tell(" ".join(in_words(watching.reading, "calibrant check with --update")))
    if written["report"] is not None:
        say("The page: ", (str(written["report"]), "bold"))
