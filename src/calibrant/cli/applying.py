"""The commands that use a calibrator: apply, export and show."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli import sources
from calibrant.cli.app import (
    SHOWN,
    brief,
    command,
    note,
    say,
    say_json,
    say_pairs,
    some_of,
    tell,
    warn,
)
from calibrant.data.segments import NewSegments
from calibrant.engines.apply import ApplyOptions
from calibrant.engines.open_engine import Engine
from calibrant.errors import InputError, ParameterError, did_you_mean, shell_quoted
from calibrant.fitting.files import to_json
from calibrant.fitting.fitted import Fitted
from calibrant.outputs import write_whole
from calibrant.result_tables import format_fact, shown_value
from calibrant.rules.base import Map, VectorMap
from calibrant.rules.piecewise import ScoreAt

#: scores that all lie in [0, 1] are of another scale than those of a fit that were so wide apart,
#: and not fewer
WIDE, FEW = 3.0, 10

OutputFile = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="What to write: .csv, .tsv, .jsonl, .parquet, or - for standard output.",
    ),
]
NewColumn = Annotated[
    str,
    typer.Option(
        metavar="COL", help="Name of the new column; of several classes: how their names begin."
    ),
]
OnMissing = Annotated[
    str, typer.Option(metavar="error|null", help="What to do with rows without a score.")
]
OnRange = Annotated[
    str,
    typer.Option(
        metavar="error|clip|allow",
        help="What to do with scores outside [0, 1], for a calibrator of probabilities.",
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite-column", help="Replace a column that has the name of the new one."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Let Spark replace a folder of the output's name.")
]


def apply(
    calibrator: sources.CalibratorFile,
    files: sources.FileNames,
    output: OutputFile,
    score: sources.FittedScore = None,
    into: NewColumn = "probability",
    segment: sources.FittedSegment = None,
    on_missing: OnMissing = "error",
    on_range: OnRange = "error",
    overwrite_column: Overwrite = False,
    force: Force = False,
    *,
    run: Annotated[sources.RunOptions, "missing", "allow_one_class", "cells"],
) -> None:
    """Add a column of calibrated probabilities, or one for each class, to files of any size.

    \b
    Examples:
      calibrant apply calibrator.json new.csv -o calibrated.csv
      calibrant apply c.json 'day-*.parquet' -o all.parquet --into p_churn
      calibrant apply c.json new.csv -o all.csv --score ape=p_ape --score bee=p_bee …
      cat new.csv | calibrant apply c.json - -o - | gzip > calibrated.csv.gz

    Rows keep their order and all other columns their values. Spark reads and writes by its own
    rules: a folder of that name, whose rows have no order.
    """
    sources.refuse_swapped(
        calibrator, files, f"apply {{calibrator}} {{files}} -o {shell_quoted(output)}"
    )
    fitted = sources.load_map(calibrator, by_row=True)
    if on_range == "clip" and fitted.expects is not None and not fitted.expects.probabilities:
        raise ParameterError(
            "--on-range clip is for calibrators of probabilities, but this one was fitted on other "
            f"numbers, from {fitted.expects.low:.6g} to {fitted.expects.high:.6g}. Leave it out."
        )
    target = sources.OutputOption(output, folder=run.engine == "spark", stream=True)
    sources.check_places({"--output": target}, [calibrator, *files])
    sources.refuse_two(output, run.json)
    if run.engine == "spark" and sources.is_standard(output):
        raise ParameterError("Spark writes a folder: name one with --output, not standard output.")
    if force and run.engine != "spark":
        raise ParameterError(
            "--force is for the engine spark: DuckDB replaces a file of that name. Leave it out."
        )
    new = NewSegments()
    with (
        run.open(*files, output, title="applying") as engine,
        sources.place_of(output, run.format) as written,
    ):
        columns = _columns(fitted, score or [], engine, files, calibrator)
        segments = sources.segment_column(fitted, segment)
        asked = ApplyOptions(columns, into, segments, on_missing, on_range, overwrite_column, force)
        other = _other_scale(fitted, asked, sources.FileSource(engine, files))
        rows = engine.apply(fitted, files, written, asked, new)
    if run.json:
        document: dict[str, Any] = {"output": output, "rows": rows}
        if engine.notes:
            document["notes"] = engine.notes
        if new.rows:
            document["rows_of_new_segments"] = new.new
        document |= (
            {"score": asked.score, "column": into, "pos_label": fitted.pos_label}
            if isinstance(asked.score, str)
            else {
                "scores": list(asked.scores),
                "columns": asked.new_columns(fitted),
                "classes": list(fitted.classes),
            }
        )
        say_json(document)
    with sources.words_beside(output):
        if not run.json:
            say(f"{rows:,} rows written to ", (sources.said_name(output), "bold"))
            tell(_in_words(fitted, asked))
        if other:
            warn(other)
        if new.new:
            (warn if new.most or run.json else tell)(f"{new.words()}: they got {new.their_map}.")


def _other_scale(fitted: Fitted, asked: ApplyOptions, source: sources.FileSource) -> str | None:
    """What to say of scores that look like probabilities to a calibrator of points, percentages or
    margins. Where most lie beyond those of the fit, the engine warns."""
    known = fitted.expects
    if known is None or known.probabilities or asked.on_range == "allow":
        return None
    if known.high - known.low < WIDE or known.low > 1.0 or known.high < 0.0:
        return None
    from calibrant.cli.reading import first_numbers

    numbers = first_numbers(source, asked.scores)
    if len(numbers) < FEW or not all(0.0 <= value <= 1.0 for value in numbers):
        return None
    if 2 * sum(known.low <= value <= known.high for value in numbers) < len(numbers):
        return None
    names = ", ".join(map(repr, asked.scores[:SHOWN]))
    return (
        f"the scores of column {names} look like probabilities: the first {len(numbers):,} lie in "
        f"[0, 1]. The calibrator was fitted on numbers from {known.low:.6g} to {known.high:.6g}, "
        "so that the new probabilities hardly differ and are probably wrong. Give it scores of the "
        "same scale; if they are, say --on-range allow."
    )


def _columns(
    fitted: Fitted, words: list[str], engine: Engine, files: list[str], path: Path
) -> str | tuple[str, ...]:
    """The columns of scores: as asked for, or as in the fit."""
    if isinstance(fitted.map, VectorMap):
        from calibrant.cli.reading import fitted_columns

        names = engine.columns(files) if words else ()
        return tuple(fitted_columns(fitted, words, names, path).values())
    known = sources.score_column(fitted, words)
    if not known:
        raise InputError(f"{path} does not know the column of scores. Name it with --score COL.")
    return known


def _in_words(fitted: Fitted, asked: ApplyOptions) -> str:
    labels = [fitted.pos_label] if isinstance(asked.score, str) else fitted.classes
    pairs = zip(asked.new_columns(fitted), labels, strict=True)
    each = [f"{column!r} is the probability of {label!r}" for column, label in pairs]
    return f"Column {some_of(each, f' ({len(each)} classes)')}."


# --- The command that writes a calibrator as something that other systems run ---------------------


#: what each target takes of the options; the others must be left out
TARGETS: Mapping[str, Sequence[str]] = {
    "sql": (
        *("dialect", "form", "score", "table", "into", "lookup"),
        *("segment", "keep", "view", "threshold"),
    ),
    "onnx": ("model", "input", "float"),
    "python": ("name", "threshold"),
    "json": (),
}

Target = Annotated[
    str, typer.Option("--to", metavar="|".join(TARGETS), help="What to write it as.")
]
ExportFile = Annotated[
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
SqlColumn = Annotated[str | None, typer.Option(metavar="COL", help="SQL: name of the new column.")]
LookupName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="SQL: table made or replaced; default: a new one per fit."),
]
SegmentOf = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="SQL: column of segments; default: as in the fit."),
]
KeptColumns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL",
        help="SQL queries: column to keep, such as a key; may be repeated. Default: all, and with "
        "several classes the scores.",
    ),
]
ViewName = Annotated[
    str | None, typer.Option(metavar="NAME", help="SQL: make a view of this name of the query.")
]
AtLeast = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        parser=sources.read_share,
        help="SQL, Python: write the decision, 1 from this probability on, else 0.",
    ),
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
    calibrator: sources.CalibratorFile,
    to: Target,
    output: ExportFile = None,
    dialect: DialectName = None,
    form: FormName = None,
    score: ScoreColumns = None,
    table: TableName = None,
    into: SqlColumn = None,
    lookup: LookupName = None,
    segment: SegmentOf = None,
    keep: KeptColumns = None,
    view: ViewName = None,
    threshold: AtLeast = None,
    name: FunctionName = None,
    model: ModelFile = None,
    input: InputKind = None,
    float: Bits = None,
    json: sources.Json = False,
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
      calibrant export calibrator.json --to sql --threshold 0.05

    All give the numbers of apply: the same side at every jump, and formulas to the last digits.
    """
    asked = locals()  # the options by their names
    known = {option: asked[option] for names in TARGETS.values() for option in names}
    given = {option: value for option, value in known.items() if value not in (None, [])}
    _check_options(to, given)
    if to == "onnx" and output is None:
        raise ParameterError("ONNX is a binary format: name a file with --output FILE.")
    if json and output is None:
        raise ParameterError("--json says what was written: name a file with --output FILE.")
    read = [calibrator] if model is None else [calibrator, model]
    if model is not None and model.is_file() and output is not None and output.exists():
        from calibrant.export.onnx.compose import weight_files

        read += weight_files(model)  # the output may be one of them
    sources.check_places({"--output": sources.OutputOption(output)}, read)
    content = _written(to, sources.load_map(calibrator), given)
    if output is None:
        _print(str(content))
        return
    data = content.encode("utf-8") if isinstance(content, str) else content
    write_whole(output, data)
    if json:
        say_json({"output": str(output), "to": to, "bytes": len(data)})
    else:
        say(f"{calibrator} written as {to} to ", (str(output), "bold"))


def _check_options(to: str, given: Mapping[str, Any]) -> None:
    """Refuse a target that is not known, and options that mean nothing to it."""
    if to not in TARGETS:
        hint = did_you_mean(to, TARGETS)
        raise ParameterError(f"--to must be one of {', '.join(TARGETS)}, but {to!r} came.{hint}")
    for option in given:
        if option not in TARGETS[to]:
            owners = [target for target, known in TARGETS.items() if option in known]
            raise ParameterError(
                f"--{option} is for {' and '.join(owners)}, but the target is {to}. Leave it out, "
                f"or use --to {' or '.join(owners)}."
            )


def _print(text: str) -> None:
    """The text as it is: a letter that the terminal cannot show must not become another one."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as wrong:
        raise ParameterError(
            f"output is printed in {encoding} here, which does not have some letters of the text, "
            f"such as {text[wrong.start]!a}. Name a file with --output FILE: it will be UTF-8."
        ) from wrong
    sys.stdout.write(text)


# --- targets ------------------------------------------------------------------------------------


def _written(to: str, fitted: Fitted, given: Mapping[str, Any]) -> str | bytes:
    """The calibrator in the form of a target, with the options that were given."""
    if to == "onnx":
        from calibrant.export.onnx.compose import compose_onnx
        from calibrant.export.onnx.model import to_onnx

        own = {name: value for name, value in given.items() if name != "model"}
        composed = "model" in given
        made = compose_onnx(given["model"], fitted, **own) if composed else to_onnx(fitted, **own)
        written: bytes = made.SerializeToString()
        return written
    if to == "python":
        from calibrant.export.python import to_python

        text: str = to_python(fitted, **given)
    else:
        text = _sql(fitted, given) if to == "sql" else to_json(fitted)
    return text.rstrip("\n") + "\n"


def _sql(fitted: Fitted, given: Mapping[str, Any]) -> str:
    from calibrant.export.sql import to_sql

    own = {name: value for name, value in given.items() if name not in ("score", "segment")}
    named, segment = given.get("score", []), given.get("segment")
    column: str | tuple[str, ...]
    if isinstance(fitted.map, VectorMap):
        column = _class_columns(fitted, fitted.map.n_columns, named)
        # CLASS=COLUMN may say otherwise than the fit
        fitted = replace(fitted, provenance={**fitted.provenance, "score_columns": column})
        if "keep" not in given:
            note(
                f"of the table's columns the query gives {some_of(column)}, for it takes several "
                "steps. Name the ones that you need, such as a key, with --keep COL."
            )
    else:
        column = sources.score_column(fitted, named) or "score"
    if segment and fitted.map.segments is None:
        raise InputError(
            "--segment is for calibrators with a map for each segment, but this one has one map "
            "for all rows. Leave it out."
        )
    made = to_sql(fitted, column=column, segment=sources.segment_column(fitted, segment), **own)
    _note_unused(fitted, given, made.statements)
    return made


def _note_unused(fitted: Fitted, given: Mapping[str, Any], statements: Sequence[str]) -> None:
    """Say which options mean nothing to what was written: that depends on the map, and the same
    command may export another one next month."""
    unused = [f"--{option}" for option in ("table", "into", "keep") if option in given]
    if unused and not statements and not isinstance(fitted.map, VectorMap):
        note(
            f"{' and '.join(unused)} {'is' if len(unused) == 1 else 'are'} for queries, but this "
            "calibrator is written as an expression of its column. Add --view NAME, or --form "
            "lookup, for a query."
        )
    lookup = given.get("lookup", "").rpartition(".")[2].strip('"`[]')
    if lookup and not any(lookup in text for text in statements):
        note("--lookup names a table that this calibrator does not need: it is written without.")


def _class_columns(fitted: Fitted, many: int, named: Sequence[str]) -> tuple[str, ...]:
    """A column for each class: by CLASS=COLUMN, as in the fit, or in the order of the classes."""
    found = fitted.provenance.get("score_columns")
    known = tuple(map(str, found)) if isinstance(found, tuple) and len(found) == many else ()
    if known and not named:
        return known
    if len(named) == 1 != many:
        named = [word.strip() for word in named[0].split(",")]
    if len(named) != many:
        raise InputError(
            f"this calibrator reads {many} columns of scores, but {len(named)} "
            f"{'was' if len(named) == 1 else 'were'} named. Name "
            "each: --score CLASS=COLUMN, or --score COLUMN in the order of the classes."
        )
    from calibrant.cli.reading import in_order

    found = in_order(named, fitted.classes) if many == len(fitted.classes) else None
    if found is None and sorted(named) == sorted(known):
        return known
    if found is not None:
        return found
    pairs = zip(named, fitted.classes, strict=False)
    shown = ", ".join(f"{column} is {label!r}" for column, label in pairs)
    note(f"the columns are taken in the order of the classes: {shown}.")
    return tuple(named)


# --- The command that shows a calibrator's file ---------------------------------------------------


def show(
    calibrator: sources.CalibratorFile,
    at: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            parser=sources.read_share,
            help="Print the score that has probability P (0.2, or 20%).",
        ),
    ] = None,
    json: sources.Json = False,
) -> None:
    """Print what a calibrator file holds, or which score has a probability.

    \b
    Examples:
      calibrant show calibrator.json
      calibrant show calibrator.json --at 0.05
    """
    fitted = sources.load_any(calibrator)
    if at is not None:
        found = sources.load_map(calibrator).score_at(at)
        if json:
            say_json(found._asdict())
        else:
            say(score_in_words(found, at))
        return
    if json:
        say_json(fitted.to_dict())
        return
    say_pairs(facts(fitted))
    if not isinstance(fitted.rule, Map):
        return
    say()
    say("Apply it: ", command(sources.apply_command(calibrator)))


def score_in_words(found: ScoreAt, asked: float) -> str:
    """Which scores have a probability, or at least it."""
    some = f"{'from' if found.rising else 'up to'} {found.score!r}"
    if found.low < found.high:
        return f"Scores from {found.low!r} to {found.high!r} have probability {asked:g}."
    if found.probability - asked > 1e-12:
        return (
            f"No score has probability {asked:g}: {some} on it is {found.probability:.6g}, before "
            "that it is less."
        )
    return f"The score {found.score!r} has probability {asked:g}; scores {some} on have more."


def facts(fitted: Fitted) -> dict[str, str]:
    """A fitted calibrator for people: method, labels, map, and where it came from."""
    params = ((k, list(v) if isinstance(v, tuple) else v) for k, v in fitted.params.items())
    given = [f"{k}={v}" for k, v in params if k not in ("pos_label", "classes")]
    *labels, last = map(repr, fitted.classes)
    shown = {
        "method": fitted.method or "(not said)",
        "parameters": ", ".join(given) or "none",
        "labels": f"{', '.join(labels)} and {last}" if labels else last,
    }
    rule = " ".join(repr(fitted.rule).split())
    if fitted.pos_label is not None:
        shown["probability of"] = repr(fitted.pos_label)
    shown["map" if isinstance(fitted.rule, Map) else "rule"] = brief(rule, 160)
    known = {key: words for key, words in _PROVENANCE.items() if key in fitted.provenance}
    if len({fitted.provenance.get(key) for key in ("rows", *_OF_WEIGHTS)}) == 1:
        known = {key: words for key, words in known.items() if key not in _OF_WEIGHTS}
    more = fitted.provenance.keys() - _PROVENANCE.keys() - _APART
    known |= {key: key.replace("_", " ") for key in sorted(more)}
    shown |= {words: format_fact(fitted.provenance[key]) for key, words in known.items()}
    if isinstance(period := fitted.provenance.get("period"), tuple):
        shown[known["period"]] = " to ".join(map(str, period))
    shown |= _measured(fitted.provenance.get("measures"))
    return {_printable(words): _printable(text) for words, text in shown.items()}


#: facts that are not shown in a line of their own
_APART = {"measures", "leaderboard"}
#: facts that say nothing new where every row counts once
_OF_WEIGHTS = {"weight", "effective_size"}
_PROVENANCE = {
    "files": "fitted to",
    "period": "rows are from",
    "fitted_at": "fitted at",
    "rows": "rows",
    "weight": "weight",
    "positive_weight": "positive",
    "class_weights": "of each label",
    "effective_size": "as good as so many rows of equal weight",
    "distinct_scores": "distinct scores",
    "score_column": "score column",
    "score_columns": "score columns",
    "label_column": "label column",
    "weight_column": "weight column",
    "segment_column": "segment column",
    "segments": "segments",
    "segments_of_their_own": "with a map of their own",
    "cells": "scores were put into",
    "moved_by_at_most": "no score was moved by more than",
    "model": "model",
    "input": "its scores are from",
    "chosen": "chosen",
    "refused": "why",
    "share": "its share beside the scores",
    "note": "note",
    "notes": "notes",
    "calibrant": "calibrant",
    "guessed": "guessed columns",
    "rows_dropped": "rows without a value, dropped",
    "numbers_written": "numbers are written",
}


def _measured(measures: Any) -> dict[str, str]:
    """Measures before and after, a line for each; nothing where there are none."""
    if not isinstance(measures, Mapping):
        return {}
    before, after = measures.get("before"), measures.get("after")
    if not isinstance(after, Mapping):
        return {}
    how = str(measures.get("how", "")).split(":")[0]
    if "folds" in measures:
        how += f", {measures['folds']} folds"
    from calibrant.metrics.measures import CLASS_MEASURES, MEASURES

    lines = {"measured": how} if how else {}
    for name, value in after.items():
        known = MEASURES.get(name) or CLASS_MEASURES.get(name)
        label = name.replace("_", " ") if known is None else known.label
        lines[f"  {label}"] = _figure(value)
        if isinstance(before, Mapping) and name in before:
            lines[f"  {label}"] = f"{_figure(before[name])} before, {_figure(value)} after"
    return lines


def _figure(value: Any) -> str:
    """A measure; what is no finite number (a file may say anything) as it is."""
    return shown_value(value) if isinstance(value, float) else str(value)


def _printable(text: str) -> str:
    """What a file says must not move the cursor, nor anything else of the terminal."""
    return text if text.isprintable() else repr(text)[1:-1]
