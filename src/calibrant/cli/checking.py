"""The command that asks whether a calibrator is still right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from calibrant.cli import options, reading
from calibrant.cli.calibrator_files import load_map, refuse_swapped
from calibrant.cli.class_reading import read_matrix
from calibrant.cli.console import command, run_with_status, say, say_json, show, tell
from calibrant.cli.first_words import names_of
from calibrant.cli.paths import OutputOption, check_places
from calibrant.cli.sources import FileSource, engine_options, find_source
from calibrant.engines.rows_of_classes import FileMatrix
from calibrant.engines.rows_of_files import FileTable
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.fitted import Fitted
from calibrant.estimators.saved_labels import label_array
from calibrant.files import save
from calibrant.maps import VectorMap
from calibrant.shell_words import in_options, quoted

if TYPE_CHECKING:
    from calibrant.monitor import Drift


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
        metavar="P",
        parser=options.read_share,
        help="Chance of an alarm if nothing has changed.",
    ),
]
Least = Annotated[
    float,
    typer.Option(
        metavar="P",
        parser=options.read_share,
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
    files: options.Files,
    reference: OldFiles = None,
    calibrator: CheckedFile = None,
    score: options.FittedScore = None,
    label: options.FittedLabel = None,
    weight: options.WeightColumn = None,
    pos_label: options.PosLabel = None,
    level: Alarms = 0.05,
    least: Least = 0.0,
    weights: options.Weighing = "importance",
    update: UpdatedFile = None,
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
    refuse_swapped(calibrator, files, "check {files} --calibrator {calibrator}")
    if reference is None and calibrator is None:
        raise ParameterError(
            "there must be something to compare with: old rows (--reference), or a calibrator "
            "(--calibrator)."
        )
    if update is not None and calibrator is None:
        raise ParameterError("only a calibrator can be updated: name it with --calibrator JSON.")
    check_places({"--update": OutputOption(update)}, [*files, *(reference or ()), calibrator])
    fitted = None if calibrator is None else load_map(calibrator)
    options.check_weighing(weights, weight)
    place = engine_options(decimal, missing, format, threads, memory_limit, engine, master)
    source = find_source(files, score, label, weight, pos_label, place, json)
    if fitted is not None and isinstance(fitted.map, VectorMap):
        source = replace(source, several=True)
    source.refuse_beside(pos_label=pos_label, cells=cells != "auto")
    asked = {"level": level, "least": least, "weights": weights}
    if source.several:
        known = _only_calibrator(fitted, calibrator, reference, update)
        result = _check_classes(source, known, asked)
    else:
        result = _check_score(source, fitted, reference, cells, asked, update)
    if json:
        say_json(_document(result))
    else:
        _print(result, files)
    if exit_code and result.drift.recommendation != "none":
        raise typer.Exit(CHANGED)


class _Result(NamedTuple):
    """What came of a check of new rows: what was found and what to do in words, whether that is to
    fit a new calibrator, and where the updated one is."""

    drift: Any
    new: FileTable | FileMatrix
    words: tuple[str, str]
    needs_fit: bool
    written: Path | None = None


# --- one score ----------------------------------------------------------------------------------


def _check_score(
    source: FileSource,
    fitted: Fitted | None,
    reference: list[str] | None,
    cells: str,
    asked: dict[str, Any],
    update: Path | None,
) -> _Result:
    """New rows against old ones, or against what a calibrator says."""
    from calibrant.monitor import check_drift
    from calibrant.monitor.drift_value import in_words

    with reading.opened(fitted_source(fitted, source)) as (engine, known):
        wanted, old = options.read_cells(cells), None
        new = reading.read_table(engine, known, wanted)
        if reference is not None:
            old = reading.read_table(engine, replace(known, files=reference), wanted)
    _check_labels(new, old, fitted)
    drift = run_with_status(
        lambda: check_drift(
            fitted if old is None else old.table,
            new.table,
            calibrator=None if old is None else fitted,
            **asked,
        ),
        f"checking {len(new.table):,} distinct scores",
        source.quiet,
    )
    written = _updated(drift, fitted, update)
    remedy = "calibrant check --calibrator JSON --update OUT"
    if written is not None:
        remedy = "the updated calibrator"
    found, todo = in_words(drift, remedy, names_of(reading.file_facts(new), "check"))
    advised = drift.recommendation
    needs_fit = advised == "new map" or (advised == "refit" and not drift.calibrated)
    words = (found, in_options(todo, {}))  # options of a command, and not Python
    return _Result(drift, new, words, needs_fit and not _useless(drift), written)


def fitted_source(fitted: Fitted | None, source: FileSource) -> FileSource:
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


def _check_labels(new: FileTable, old: FileTable | None, fitted: Fitted | None) -> None:
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


def _updated(drift: Drift, fitted: Fitted | None, output: Path | None) -> Path | None:
    """The file of the calibrator with the remedy, where one will do."""
    if output is None or fitted is None or drift.recommendation not in ("intercept", "refit"):
        return None
    if _useless(drift):  # nothing is to be fitted before it is known why
        return None
    save(drift.update(fitted), output)
    return output


def _useless(drift: Drift) -> bool:
    """Whether nothing is worth fitting to the new rows."""
    return drift.wrong_way or (drift.look is not None and drift.look.useless)


# --- several classes ----------------------------------------------------------------------------


def _only_calibrator(
    fitted: Fitted | None, path: Path | None, rows: Sequence[str] | None, update: Path | None
) -> tuple[Fitted, Path]:
    """A calibrator of several classes and its file; an error where new rows are to be checked
    against something else, or it is to be updated."""
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
    return fitted, path


def _check_classes(
    source: FileSource, known: tuple[Fitted, Path], asked: dict[str, Any]
) -> _Result:
    """New rows against what a calibrator of several classes says."""
    from calibrant.monitor.class_drift import check_class_drift

    fitted, _ = known
    label = source.label or fitted.provenance.get("label_column")
    read = read_matrix(replace(source, label=label if isinstance(label, str) else ""), known)
    matrix = read.matrix
    drift = run_with_status(
        lambda: check_class_drift(
            fitted,
            matrix.scores,
            label_array(read.classes)[matrix.codes],
            sample_weight=matrix.weight,
            **asked,
        ),
        f"checking {len(read.classes)} classes",
        source.quiet,
    )
    words = drift.in_words(names_of(reading.file_facts(read), "check"))
    useless = drift.look is not None and drift.look.useless
    return _Result(drift, read, words, drift.recommendation != "none" and not useless)


# --- what is said -------------------------------------------------------------------------------


def _document(result: _Result) -> dict[str, Any]:
    """The machine's answer."""
    document = {**result.drift.to_dict(), "summary": " ".join(result.words)}
    if isinstance(result.new, FileTable):
        document["updated"] = None if result.written is None else str(result.written)
    return document | reading.file_facts(result.new)


def _print(result: _Result, files: list[str]) -> None:
    """The table, the figures, what was found and what to do."""
    from calibrant.monitor.drift_value import facts, table_of

    drift = result.drift
    if isinstance(result.new, FileTable):
        for line in table_of(drift):
            say(line)
        for line in facts(drift):
            tell((line, "dim"))
    else:
        show(drift)
    say()
    found, todo = result.words
    tell((found, "bold"))
    tell(todo)
    if result.written is not None:
        say("The updated calibrator: ", (str(result.written), "bold"))
    elif result.needs_fit:
        say("Fit one: ", command(_fit_command(files, result.new)))


def _fit_command(files: list[str], new: FileTable | FileMatrix) -> str:
    """The command that fits a calibrator to the new rows."""
    if isinstance(new, FileTable):
        columns = [new.facts["score_column"]]
    else:
        pairs = zip(new.classes, new.facts["score_columns"], strict=True)
        columns = [f"{label}={column}" for label, column in pairs]
    scores = [word for column in columns for word in ("-s", column)]
    words = ["calibrant", "fit", *files, *scores, "-l", new.facts["label_column"]]
    return " ".join(map(quoted, [*words, "-o", "calibrator.json"]))
