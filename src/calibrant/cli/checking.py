"""The commands that ask whether a calibrator is still right: check and monitor."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from calibrant.cli import reading, sources
from calibrant.cli.app import command, run_with_status, say, say_json, show, tell
from calibrant.data.segments import JOIN_COLUMNS
from calibrant.engines.files import is_calibrator
from calibrant.engines.open_engine import FileScores
from calibrant.errors import InputError, ParameterError, shell_quoted
from calibrant.fitting.files import save
from calibrant.fitting.fitted import Fitted, label_array
from calibrant.outputs import follow_links, is_same_file, try_lock, write_whole
from calibrant.result_tables import shown_value
from calibrant.rules.base import VectorMap

if TYPE_CHECKING:
    from calibrant.monitor.monitor import Monitor


#: the exit code that says that something is to be done, if asked for
CHANGED = 3


OldFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--reference", "-r", metavar="OLD", help="File or glob of old rows; may be repeated."
    ),
]
CheckedFile = Annotated[
    Path | None,
    typer.Option(
        "--calibrator", "-c", metavar="JSON", help="Calibrator whose probabilities are checked."
    ),
]
Alarms = Annotated[
    float,
    typer.Option(
        metavar="P", parser=sources.read_share, help="Chance of an alarm if nothing has changed."
    ),
]
Least = Annotated[
    float,
    typer.Option(
        metavar="P",
        parser=sources.read_share,
        help="Smallest change of the probability (root mean square) that matters.",
    ),
]
UpdatedFile = Annotated[
    Path | None,
    typer.Option(
        metavar="OUT", help="Write a mended calibrator, where a shift or a line is enough."
    ),
]
ExitCode = Annotated[
    bool, typer.Option("--exit-code", help="Exit with 3 if something is to be done.")
]


def check(
    files: sources.FileNames,
    reference: OldFiles = None,
    calibrator: CheckedFile = None,
    score: sources.FittedScore = None,
    label: sources.FittedLabel = None,
    weight: sources.WeightColumn = None,
    pos_label: sources.PosLabel = None,
    level: Alarms = 0.05,
    least: Least = 0.0,
    weights: sources.Weighing = "importance",
    update: UpdatedFile = None,
    exit_code: ExitCode = False,
    *,
    run: sources.EngineRun,
) -> None:
    """Ask whether scores still mean what they meant, and what to do if not.

    \b
    Examples:
      calibrant check march.csv --reference january.csv --score p --label churned
      calibrant check march.csv --calibrator c.json --update c-march.json
      calibrant check 'new-*.parquet' -r 'old-*.parquet' -c c.json --json --exit-code
      calibrant check march.parquet -c c.json --least 0.01
      calibrant check march.csv -c three-classes.json --label kind

    New rows are compared with old rows, or with what a calibrator says.
    With both, the calibrator's probabilities of old and new rows are
    compared. Scores that only moved raise no alarm: what they mean must have
    changed. With several classes each is checked against the rest.

    Each check may raise a false alarm. Before n checks, as in a nightly job,
    give each the level 0.05/n, and only rows that came since the last one.
    """
    sources.refuse_swapped(calibrator, files, "check {files} --calibrator {calibrator}")
    if reference is None and calibrator is None:
        raise ParameterError(
            "there must be something to compare with: old rows (--reference), or a calibrator "
            "(--calibrator)."
        )
    if update is not None and calibrator is None:
        raise ParameterError("only a calibrator can be updated: name it with --calibrator JSON.")
    sources.check_places(
        {"--update": sources.OutputOption(update)}, [*files, *(reference or ()), calibrator]
    )
    fitted = None if calibrator is None else sources.load_map(calibrator)
    sources.check_weighing(weights, weight)
    with run.open(*files, *(reference or ())) as engine:
        source = reading.find_source(
            *(engine, files, score, label, weight, pos_label, run), guess=fitted is None
        )
        if fitted is not None and isinstance(fitted.map, VectorMap):
            source = replace(source, several=True)
        source.refuse_beside()
        if source.several:
            _refuse_beside_classes(fitted, calibrator, reference, update)
        new, old = _read(source, fitted, calibrator, reference)
    drift = _drift(new, old, fitted, run.json, level=level, least=least, weights=weights)
    useless = getattr(drift, "wrong_way", False) or (drift.look is not None and drift.look.useless)
    mended = None  # nothing is to be fitted before it is known why
    if fitted is not None and not useless and drift.recommendation in ("intercept", "refit"):
        mended = update
    if mended is not None:
        save(drift.update(fitted), mended)
    rate = _one_rate(fitted, new)
    found, todo, by_fit = _in_words(replace(drift, look=None) if rate else drift, new, mended)
    found = f"{rate} {found}".strip()
    if run.json:
        updated = {} if new.several else {"updated": None if mended is None else str(mended)}
        document = {**drift.to_dict(), "summary": f"{found} {todo}", **updated}
        say_json(document | new.document)
    else:
        _print(drift, new)
        tell((found, "bold"))
        tell(todo)
        if mended is not None:
            say("The updated calibrator: ", (str(mended), "bold"))
        elif by_fit and not useless:
            say("Fit one: ", command(_fit_command(files, new)))
    if exit_code and drift.recommendation != "none":
        raise typer.Exit(CHANGED)


def _read(
    source: sources.FileSource,
    fitted: Fitted | None,
    path: Path | None,
    reference: list[str] | None,
) -> tuple[FileScores, FileScores | None]:
    """The new rows, and the old ones to compare with, if they are named."""
    if source.several and fitted is not None and path is not None:
        label = source.label or fitted.provenance.get("label_column")
        source = replace(source, label=label if isinstance(label, str) else "")
        return reading.read_matrix(source, (fitted, path)), None
    source = reading.complete_roles(fitted_source(fitted, source))
    new, old = reading.read_table(source), None
    if reference is not None:
        old = reading.read_table(replace(source, files=reference))
    _check_labels(new, old, fitted)
    return new, old


def _drift(
    new: FileScores, old: FileScores | None, fitted: Fitted | None, quiet: bool, **asked: Any
) -> Any:
    """New rows against old ones, or against what a calibrator says: a `Drift` or `ClassDrift`."""
    from calibrant.monitor.drift import check_class_drift, check_drift

    if new.several:
        given: Any = (fitted, new.data.scores, label_array(new.classes)[new.data.codes])
        return run_with_status(
            lambda: check_class_drift(*given, sample_weight=new.data.weight, **asked),
            f"checking {len(new.classes)} classes",
            quiet,
        )
    against, calibrator = (fitted, None) if old is None else (old.data, fitted)
    return run_with_status(
        lambda: check_drift(against, new.data, calibrator=calibrator, **asked),
        f"checking {len(new.data):,} distinct scores",
        quiet,
    )


# --- one score ----------------------------------------------------------------------------------


def fitted_source(fitted: Fitted | None, source: sources.FileSource) -> sources.FileSource:
    """A source of one score with the columns and the positive label of the fit where none were
    named. A calibrator of several classes has more columns of scores, and is refused."""
    if fitted is None:
        return source
    if isinstance(fitted.map, VectorMap):
        raise InputError(
            "this command needs a calibrator of one score, but this one is of several classes. Use "
            "calibrant check, which checks each class against the rest."
        )
    score = source.score or fitted.provenance.get("score_column")
    label = source.label or fitted.provenance.get("label_column")
    return replace(
        source,
        words=[score] if isinstance(score, str) else (),
        label=label if isinstance(label, str) else "",
        pos_label=str(fitted.pos_label) if source.pos_label is None else source.pos_label,
    )


def _check_labels(new: FileScores, old: FileScores | None, fitted: Fitted | None) -> None:
    """Everything must speak of the same two labels."""
    found: dict[str, tuple[Any, ...]] = {"new rows": new.classes}
    if old is not None:
        found["old rows"] = old.classes
    if fitted is not None:
        found["calibrator"] = fitted.classes
    if not all(_alike(new.classes, classes) for classes in found.values()):
        shown = ", ".join(f"{who}: {classes!r}" for who, classes in found.items())
        raise InputError(
            f"all must have the same two labels, but these came: {shown}. Write the labels of the "
            "new rows like the others."
        )
    if fitted is not None and not _alike((new.pos_label,), (fitted.pos_label,)):
        raise InputError(
            "the calibrator's probabilities must be those of the positive label, but they are of "
            f"{fitted.pos_label!r}, and --pos-label is {new.pos_label!r}. Leave --pos-label out."
        )


def _alike(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Whether labels are the same, or read the same: 1 in one file may be 1.0 in another."""
    return len(first) == len(second) and all(
        a == b or str(a) == str(b) for a, b in zip(first, second, strict=True)
    )


# --- several classes ----------------------------------------------------------------------------


def _refuse_beside_classes(
    fitted: Fitted | None, path: Path | None, rows: Sequence[str] | None, update: Path | None
) -> None:
    """Refuse several columns of scores where new rows are to be checked against anything but a
    calibrator of several classes, or where it is to be updated."""
    if fitted is None or path is None or rows is not None:
        raise ParameterError(
            "with several classes new rows are checked against a calibrator, not against old "
            "rows: what one column means depends on the others, so that scores which only "
            "moved would look like a change. Fit a calibrator to the old rows, and name it "
            "alone, with --calibrator JSON."
        )
    if not isinstance(fitted.map, VectorMap):
        raise InputError(f"{path} reads one column of scores, but several were named. Name one.")
    if update is not None:
        raise ParameterError(
            "a calibrator of several classes cannot be updated by a shift or a line: leave "
            "--update out, and fit one anew to new rows if a change is found."
        )


# --- what is said -------------------------------------------------------------------------------


def _in_words(drift: Any, new: FileScores, mended: Path | None) -> tuple[str, str, bool]:
    """What was found, what to do, and whether that is to fit a new calibrator."""
    from calibrant.monitor.drift import drift_in_words

    names, advised = reading.names_of(new.document, "check"), drift.recommendation
    if new.several:
        return (*drift.in_words(names), advised != "none")
    by_hand = "calibrant check --calibrator JSON --update OUT"
    remedy = by_hand if mended is None else "the updated calibrator"
    found, todo = drift_in_words(drift, remedy, names)
    by_fit = advised == "new map" or (advised == "refit" and not drift.calibrated)
    return found, todo, by_fit


def _one_rate(fitted: Fitted | None, new: FileScores) -> str:
    """A sentence where a calibrator gives all rows one probability, whatever their scores; else
    nothing."""
    if fitted is None or new.several or fitted.rule.needs:
        return ""
    given = fitted.map(new.data.scores)
    if np.ptp(given) > 0.0:
        return ""
    return f"The calibrator gives one rate for all rows, {shown_value(given[0])}."


def _print(drift: Any, new: FileScores) -> None:
    """The table and the figures."""
    from calibrant.monitor.drift import drift_facts, drift_table

    if new.several:
        show(drift)
    else:
        for line in drift_table(drift):
            say(line)
        for line in drift_facts(drift):
            tell((line, "dim"))
    say()


def _fit_command(files: list[str], new: FileScores) -> str:
    """The command that fits a calibrator to the new rows."""
    if not new.several:
        columns = [new.facts["score_column"]]
    else:
        pairs = zip(new.classes, new.facts["score_columns"], strict=True)
        columns = [f"{label}={column}" for label, column in pairs]
    scores = [word for column in columns for word in ("-s", column)]
    words = ["calibrant", "fit", *files, *scores, "-l", new.facts["label_column"]]
    return " ".join(map(shell_quoted, [*words, "-o", "calibrator.json"]))


# --- The command for a job that runs every night: a monitor whose state is a file -----------------


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
        parser=sources.read_share,
        help="New monitor: chance of a false alarm, ever; 0.05.",
        show_default=False,
    ),
]
LeastRows = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        parser=sources.read_share,
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
    files: sources.FileNames,
    calibrator: WatchedFile = None,
    score: sources.FittedScore = None,
    prob: ProbabilityColumn = None,
    label: sources.FittedLabel = None,
    weight: sources.WeightColumn = None,
    segment: sources.SegmentColumn = None,
    pos_label: sources.PosLabel = None,
    alpha: Alpha = None,
    least: LeastRows = None,
    when: When = "",
    plot: ChartFile = None,
    report: PageFile = None,
    exit_code: ExitCode = False,
    *,
    run: sources.EngineRun,
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
    watch = f"monitor {shell_quoted(str(state))} {{files}} --calibrator {{calibrator}}"
    sources.refuse_swapped(calibrator, files, watch)
    if is_calibrator(state):
        raise ParameterError(
            f"STATE must be a file of the monitor, which it makes, but {state} is a calibrator. "
            f"Name that one with --calibrator {shell_quoted(str(state))}."
        )
    written = {
        "--plot": sources.OutputOption(plot, sources.PICTURES),
        "--report": sources.OutputOption(report, sources.PAGES),
    }
    sources.check_places(written, [*files, calibrator, state])
    sources.check_places({"STATE": sources.OutputOption(state)}, [*files, calibrator])
    fitted = None if calibrator is None else sources.load_map(calibrator)
    _check_scores(score, calibrator, prob)
    if segment and len(segment) > 1:
        raise ParameterError(
            f"a monitor watches segments of one column, but {len(segment)} came: it shares its "
            f"chance of a false alarm between segments, and knows no parts of parts. {JOIN_COLUMNS}"
        )
    column = segment[0] if segment else None
    of_scores = fitted is not None and prob is None
    option, words = ("--score", score or []) if of_scores else ("--prob", [prob or ""])
    cells = run.read_cells()
    with locked(follow_links(state)):
        with run.open(*files) as engine:
            source = sources.FileSource(
                *(engine, files, words[:1], label or "", weight, pos_label, column),
                option=option,
                run=run,
                cells=cells,
            )
            source = fitted_source(fitted, source)
            watching = _begin(state, fitted, column, alpha, least, prob)
            source = reading.complete_roles(source)
            read = (reading.read_segments if segment else reading.read_table)(source)
        watching.update_table(
            read.data,
            scores=of_scores,
            segments=read.by_segment if segment else None,
            when=when,
            classes=read.classes,
            pos_label=read.pos_label,
        )
        if plot is not None:
            from calibrant.diagrams.draw.figures import render
            from calibrant.diagrams.draw.others import monitor_diagram

            picture = render(monitor_diagram(watching), plot.suffix[1:].lower())
            write_whole(plot, picture)
        if report is not None:
            from calibrant.reports.monitor_page import monitor_report

            monitor_report(watching, saved_as=str(state), output=report)
        watching.save(state)  # last: what failed can be run again
    _tell(watching, state, read, {"plot": plot, "report": report}, run.json)
    if exit_code and watching.alarm is not None:
        raise typer.Exit(CHANGED)


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Keep other processes from the same work on a file; an InputError while one is at it.

    The lock is the system's own, on a file beside the state that is removed at the end. It goes
    with its process, so that a job that was killed keeps nobody out.
    """
    beside = state.with_name(f"{state.name}.lock")
    with open(os.open(beside, os.O_CREAT | os.O_RDWR, 0o600), "rb+") as stream:
        # a file system without locks keeps nobody out
        if try_lock(stream.fileno()) is False or not is_same_file(beside, stream.fileno()):
            raise InputError(
                f"only one command at a time may work on {state}, but another one does now. "
                "Nothing was changed: run this one again when that one is done."
            )
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no open file; an old one keeps nobody out
                beside.unlink()


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


def _begin(
    state: Path,
    fitted: Fitted | None,
    segment: str | None,
    alpha: float | None,
    least: float | None,
    prob: str | None,
) -> Monitor:
    """The monitor of the file, or a new one."""
    from calibrant.monitor.monitor import Monitor

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
    read: FileScores,
    written: Mapping[str, Path | None],
    json: bool,
) -> None:
    from calibrant.monitor.monitor import batch_counts, reading_in_words

    if json:
        counts = {"batches": watching.batches, "rows_in_all": watching.rows, "state": str(state)}
        places = {name: str(path) for name, path in written.items() if path is not None}
        say_json({**watching.reading.to_dict(), **counts, **places, **read.document})
        return
    say(f"{batch_counts(watching.batches, watching.rows)} so far in ", (str(state), "bold"))
    tell(" ".join(reading_in_words(watching.reading, "calibrant check with --update")))
    if written["report"] is not None:
        say("The page: ", (str(written["report"]), "bold"))
