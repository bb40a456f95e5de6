"""The command that writes a calibrator as something that other systems run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli import jobs
from calibrant.cli.console import say, say_json
from calibrant.cli.options import CalibratorFile, Json
from calibrant.cli.paths import OutputOption, check_places
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.fitted import Fitted
from calibrant.maps import VectorMap
from calibrant.outputs import write_whole

__all__ = ["export"]


@dataclass(frozen=True)
class ExportOptions:
    """What was asked for, as given; None where nothing was said."""

    dialect: str | None = None
    form: str | None = None
    columns: tuple[str, ...] = ()
    table: str | None = None
    into: str | None = None
    lookup: str | None = None
    segment: str | None = None
    keep: tuple[str, ...] = ()
    view: str | None = None
    name: str | None = None
    model: Path | None = None
    input: str | None = None
    float: int | None = None


def _sql(fitted: Fitted, wanted: ExportOptions) -> str:
    from calibrant.export.sql import to_sql

    given = {
        "dialect": wanted.dialect,
        "form": wanted.form,
        "table": wanted.table,
        "into": wanted.into,
        "lookup": wanted.lookup,
        "keep": wanted.keep or None,
        "view": wanted.view,
    }
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return to_sql(
        fitted, column=_columns(fitted, wanted), segment=_segment(fitted, wanted), **options
    )


def _python(fitted: Fitted, wanted: ExportOptions) -> str:
    from calibrant.export.python import to_python

    return to_python(fitted) if wanted.name is None else to_python(fitted, name=wanted.name)


def _json(fitted: Fitted, wanted: ExportOptions) -> str:
    from calibrant.export.json import to_json

    return to_json(fitted)


def _onnx(fitted: Fitted, wanted: ExportOptions) -> bytes:
    from calibrant.export.onnx import compose_onnx, to_onnx

    given = {"input": wanted.input, "float": wanted.float}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if wanted.model is None:
        made = to_onnx(fitted, **options)
    else:
        made = compose_onnx(wanted.model, fitted, **options)
    written: bytes = made.SerializeToString()
    return written


Writer = Callable[[Fitted, ExportOptions], str | bytes]

#: what each target is written by, and the options that mean something to it
TARGETS: Mapping[str, tuple[Writer, tuple[str, ...]]] = {
    "sql": (
        _sql,
        ("dialect", "form", "columns", "table", "into", "lookup", "segment", "keep", "view"),
    ),
    "onnx": (_onnx, ("model", "input", "float")),
    "python": (_python, ("name",)),
    "json": (_json, ()),
}
#: where the option is called otherwise
_CALLED = {"columns": "score"}


Target = Annotated[
    str, typer.Option("--to", metavar="|".join(TARGETS), help="What to write it as.")
]
OutputFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where it goes; default: printed."),
]
DialectName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="SQL: duckdb, sqlite, spark, postgres, …; duckdb."),
]
FormName = Annotated[
    str | None,
    typer.Option(metavar="auto|expression|lookup", help="SQL: one expression, or a table."),
]
ScoreColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--score",
        "-s",
        metavar="COL",
        help="SQL: column of scores, default: as in the fit; one for each class.",
    ),
]
TableName = Annotated[
    str | None, typer.Option(metavar="NAME", help="SQL: the table that holds the scores.")
]
NewColumn = Annotated[str | None, typer.Option(metavar="COL", help="SQL: name of the new column.")]
LookupName = Annotated[
    str | None, typer.Option(metavar="NAME", help="SQL: name of the table that is made.")
]
SegmentOf = Annotated[
    str | None,
    typer.Option(metavar="COL", help="SQL: column of segments; default: as in the fit."),
]
KeptColumns = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="SQL queries: column to keep; may be repeated; all."),
]
ViewName = Annotated[
    str | None, typer.Option(metavar="NAME", help="SQL: make a view of this name of the query.")
]
FunctionName = Annotated[
    str | None, typer.Option(metavar="NAME", help="Python: name of the function.")
]
ModelFile = Annotated[
    Path | None,
    typer.Option(metavar="ONNX", help="ONNX: put the calibrator behind this model."),
]
InputKind = Annotated[
    str | None,
    typer.Option(metavar="score|logit", help="ONNX: what the graph is given; score."),
]
Bits = Annotated[
    int | None,
    typer.Option(metavar="32|64", help="ONNX: bits of its numbers; 64, or the model's."),
]


def export(
    calibrator: CalibratorFile,
    to: Target,
    output: OutputFile = None,
    dialect: DialectName = None,
    form: FormName = None,
    score: ScoreColumns = None,
    table: TableName = None,
    into: NewColumn = None,
    lookup: LookupName = None,
    segment: SegmentOf = None,
    keep: KeptColumns = None,
    view: ViewName = None,
    name: FunctionName = None,
    model: ModelFile = None,
    input: InputKind = None,
    float: Bits = None,
    json: Json = False,
) -> None:
    """Write a calibrator as SQL, ONNX, plain Python or JSON, for systems without calibrant.

    \b
    Examples:
      calibrant export calibrator.json --to sql --dialect postgres
      calibrant export calibrator.json --to sql --table raw.scores --view mart.calibrated
      calibrant export calibrator.json --to onnx -o calibrator.onnx
      calibrant export calibrator.json --to onnx --model model.onnx -o both.onnx
      calibrant export calibrator.json --to onnx --model net.onnx --input logit -o both.onnx
      calibrant export calibrator.json --to python -o calibrate.py

    All give the numbers of apply: the same side at every jump, and formulas to the last digits.
    """
    asked = ExportOptions(
        dialect=dialect,
        form=form,
        columns=tuple(score or ()),
        table=table,
        into=into,
        lookup=lookup,
        segment=segment,
        keep=tuple(keep or ()),
        view=view,
        name=name,
        model=model,
        input=input,
        float=float,
    )
    writer = _writer(to, asked)
    if to == "onnx" and output is None:
        raise ParameterError("ONNX is no text: name a file with --output FILE.")
    if json and output is None:
        raise ParameterError("--json says what was written: name a file with --output FILE.")
    check_places({"--output": OutputOption(output)}, [calibrator, *_files_of(model, output)])
    content = writer(jobs.load_map(calibrator), asked)
    if isinstance(content, str):
        content = content.rstrip("\n") + "\n"
    if output is None:
        _print(str(content))
        return
    data = content.encode("utf-8") if isinstance(content, str) else content
    write_whole(output, data)
    if json:
        say_json({"output": str(output), "to": to, "bytes": len(data)})
    else:
        say(f"{calibrator} written as {to} to ", (str(output), "bold"))


def _writer(to: str, wanted: ExportOptions) -> Writer:
    """What writes the target, if every option that was given means something to it."""
    if to not in TARGETS:
        raise ParameterError(f"--to must be one of {', '.join(TARGETS)}, but {to!r} came.")
    writer, options = TARGETS[to]
    for option, value in vars(wanted).items():
        if value not in (None, ()) and option not in options:
            owner = next(target for target, (_, known) in TARGETS.items() if option in known)
            called = _CALLED.get(option, option)
            raise ParameterError(
                f"--{called} is for {owner}, but the target is {to}. Leave it out, or use "
                f"--to {owner}."
            )
    return writer


def _files_of(model: Path | None, output: Path | None) -> list[Path]:
    """A model's file, and those that hold its weights where the output may be one of them."""
    if model is None:
        return []
    if output is None or not output.exists() or not model.is_file():
        return [model]
    from calibrant.export.onnx.classifier import weight_files

    return [model, *weight_files(model)]


def _print(text: str) -> None:
    """The text as it is: a letter that the terminal cannot show must not become another one."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as wrong:
        raise ParameterError(
            f"the text has letters, such as {text[wrong.start]!a}, that {encoding} has not, in "
            "which output is printed here. Name a file with --output FILE: it will be UTF-8."
        ) from wrong
    sys.stdout.write(text)


def _columns(fitted: Fitted, wanted: ExportOptions) -> str | tuple[str, ...]:
    """The columns of scores: those asked for, or that of the fit."""
    if isinstance(fitted.map, VectorMap):
        many = fitted.map.n_columns
        if len(wanted.columns) != many:
            raise InputError(
                f"this calibrator reads {many} columns of scores, but {len(wanted.columns)} were "
                "named. Name each, in the order of the classes: --score A --score B …"
            )
        return wanted.columns
    if len(wanted.columns) > 1:
        raise InputError(
            f"this calibrator reads one column of scores, but {len(wanted.columns)} were named."
        )
    known = fitted.provenance.get("score_column")
    return wanted.columns[0] if wanted.columns else known if isinstance(known, str) else "score"


def _segment(fitted: Fitted, wanted: ExportOptions) -> str | None:
    if wanted.segment is None and fitted.map.segments is not None:
        return jobs.segment_column(fitted, None)
    if wanted.segment is not None and fitted.map.segments is None:
        raise InputError(
            "--segment is for calibrators with a map for each segment, but this one has one map "
            "for all rows. Leave it out."
        )
    return wanted.segment
