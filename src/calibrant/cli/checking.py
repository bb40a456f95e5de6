"""The command that asks whether a calibrator is still right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from calibrant.cli import class_columns, jobs, options
from calibrant.cli.asked_columns import ColumnRoles
from calibrant.cli.calibrator_files import load_map, refuse_swapped
from calibrant.cli.class_reading import ClassRoles
from calibrant.cli.console import command, run_with_status, say, say_json, tell
from calibrant.cli.first_words import names_of
from calibrant.cli.paths import OutputOption, check_places
from calibrant.errors import InputError, ParameterError
from calibrant.maps import VectorMap
from calibrant.shell_words import in_options, quoted

if TYPE_CHECKING:
    from calibrant.engines.rows_of_files import FileTable
    from calibrant.estimators.fitted import Fitted
    from calibrant.metrics.first_look import LabelNames
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
WeightsAre = Annotated[
    str,
    typer.Option(
        metavar="importance|counts",
        help="Whether a weight says how much a row matters, or how many rows it stands for.",
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
    weights: WeightsAre = "importance",
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
    from calibrant.cli.column_roles import complete_roles
    from calibrant.monitor import check_drift

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
    twice = files if class_columns.must_look(score) else ()
    reading = options.read_options(decimal, missing, format, twice=twice)
    place = options.EngineOptions(engine, master, threads, memory_limit, reading)
    only = class_columns.only_column(score or [""], files, (label, weight), place)
    if only is None or (fitted is not None and isinstance(fitted.map, VectorMap)):
        from calibrant.cli import class_checks

        class_columns.refuse_beside(pos_label=pos_label, cells=cells != "auto")
        roles = ClassRoles(score or [], label or "", weight)
        asked = class_checks.ClassCheck(level, least, weights)
        against = class_checks.CheckedAgainst(fitted, calibrator, reference, update)
        if class_checks.check_classes(files, against, roles, place, asked, json) and exit_code:
            raise typer.Exit(CHANGED)
        return
    columns = fitted_roles(fitted, ColumnRoles(only, label or "", weight, pos_label))
    with options.engine_for("reading", json, place) as opened:
        columns = complete_roles(opened, files, columns)
        new = jobs.read_files(opened, files, columns, cells=options.read_cells(cells))
        old = None
        if reference is not None:
            old = jobs.read_files(opened, reference, columns, cells=options.read_cells(cells))
    _check_labels(new, old, fitted)
    drift = run_with_status(
        lambda: check_drift(
            fitted if old is None else old.table,
            new.table,
            calibrator=None if old is None else fitted,
            level=level,
            least=least,
            weights=weights,
        ),
        f"checking {len(new.table):,} distinct scores",
        json,
    )
    result = _Result(drift, new, _updated(drift, fitted, update))
    if json:
        say_json(_document(result))
    else:
        _print(result, files, columns)
    if exit_code and drift.recommendation != "none":
        raise typer.Exit(CHANGED)


class _Result(NamedTuple):
    """What came of a check, and where the updated calibrator is."""

    drift: Drift
    new: FileTable
    written: Path | None


def fitted_roles(fitted: Fitted | None, asked: ColumnRoles) -> ColumnRoles:
    """The columns of one score as asked for, or as in the fit; empty names for those that are not
    known. A calibrator of several classes has more columns of scores, and is refused."""
    if fitted is not None and isinstance(fitted.map, VectorMap):
        raise InputError(
            "this command needs a calibrator of one score, but this one is of several classes. Use "
            "calibrant check, which checks each class against the rest."
        )
    known: Any = {} if fitted is None else fitted.provenance
    names = {}
    for role in ("score", "label"):
        name = getattr(asked, role) or known.get(f"{role}_column")
        names[role] = name if isinstance(name, str) else ""
    pos_label = asked.pos_label
    if pos_label is None and fitted is not None:
        pos_label = str(fitted.pos_label)
    return replace(asked, score=names["score"], label=names["label"], pos_label=pos_label)


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
    from calibrant.files import save

    if output is None or fitted is None or drift.recommendation not in ("intercept", "refit"):
        return None
    if _useless(drift):  # nothing is to be fitted before it is known why
        return None
    save(drift.update(fitted), output)
    return output


def _useless(drift: Drift) -> bool:
    """Whether nothing is worth fitting to the new rows."""
    return drift.wrong_way or (drift.look is not None and drift.look.useless)


def _names(result: _Result) -> LabelNames:
    return names_of(result.new)._replace(face="check")


def _document(result: _Result) -> dict[str, Any]:
    """The machine's answer."""
    written = None if result.written is None else str(result.written)
    return {
        **result.drift.to_dict(),
        "summary": " ".join(_in_words(result)),
        "updated": written,
        **jobs.file_facts(result.new),
    }


def _in_words(result: _Result) -> tuple[str, str]:
    """What was found, and what to do: by which command, and not in Python."""
    from calibrant.monitor.drift_value import in_words

    remedy = "calibrant check --calibrator JSON --update OUT"
    if result.written is not None:
        remedy = "the updated calibrator"
    found, todo = in_words(result.drift, remedy, _names(result))
    return found, in_options(todo, {})


def _print(result: _Result, files: list[str], columns: ColumnRoles) -> None:
    """The table, the figures, what was found and what to do."""
    from calibrant.monitor.drift_value import facts, table_of

    drift = result.drift
    for line in table_of(drift):
        say(line)
    for line in facts(drift):
        tell((line, "dim"))
    say()
    found, todo = _in_words(result)
    tell((found, "bold"))
    tell(todo)
    if result.written is not None:
        say("The updated calibrator: ", (str(result.written), "bold"))
    elif not _useless(drift) and (
        drift.recommendation == "new map"
        or (drift.recommendation == "refit" and not drift.calibrated)
    ):
        names = " ".join(map(quoted, files))
        where = f"-s {quoted(columns.score)} -l {quoted(columns.label)}"
        say("Fit one: ", command(f"calibrant fit {names} {where} -o calibrator.json"))
