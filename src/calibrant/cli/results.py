"""How results read: on the terminal, as JSON, and as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box

from calibrant.cli.console import command, reliability_text, say, say_pairs, show, tell
from calibrant.cli.jobs import FitResult, tell_first, tell_others
from calibrant.cli.sources import is_standard, said_name, write_standard
from calibrant.data.frozen import thawed_json
from calibrant.errors import quoted
from calibrant.fitting.files import save, to_json
from calibrant.fitting.fitted import Fitted
from calibrant.metrics.evaluating import Evaluation, in_words
from calibrant.metrics.facts import Measure
from calibrant.metrics.measures import CLASS_MEASURES, MEASURES
from calibrant.outputs import write_whole
from calibrant.result_tables import (
    ResultTable,
    TableColumn,
    TableRow,
    rich_table,
    shown_percent,
    shown_value,
    worded,
)
from calibrant.rules.base import Map
from calibrant.rules.piecewise import ScoreAt


def print_fit(result: FitResult, written: Mapping[str, Path | None]) -> None:
    """What was fitted, what it improves, where it is, and how to go on."""
    look = result.look
    first = tell_first(look, result.names)
    tell(_headline(result))
    if result.verdict is not None:
        tell((result.verdict.removeprefix(first).strip(), "bold"))
    if result.segments:
        tell((_of_segments(result), "bold"))
    if result.evaluation is None and result.folds:
        tell(result.too_few_words)
    if result.evaluation is not None and result.after is not None:
        say()
        if result.diagram_title:
            tell(result.diagram_title)
        say(reliability_text(result.after, result.before))
        say()
        show(result.shown_evaluation, colour=not first)
        if not look.unproven:
            tell(in_words(result.evaluation))
        tell((_how(result), "dim"))
    tell_others(result.advice, first)
    say()
    say_pairs({name: said_name(path) for name, path in written.items() if path is not None})
    say()
    output = written["calibrator"]
    say("Apply it: ", command(apply_command(output)))


def _headline(result: FitResult) -> str:
    read, fitted = result.read, result.fitted
    names = read.facts["files"]
    of = names[0] if len(names) == 1 else f"{len(names)} files"
    return f"{fitted.method} fitted to {read.facts['rows']:,} rows of {of}: {result.sizes}"


def _of_segments(result: FitResult) -> str:
    """How many segments there are, and how far they go their own way."""
    own = [one for one in result.segments if one.share > 0]
    said = f"{len(result.segments):,} segments, {len(own):,} of them with a map of their own"
    if own:
        shares = sorted(one.share for one in own)
        middle = shares[len(shares) // 2]
        said += f" (its share is {shares[0]:.2g} to {shares[-1]:.2g}, half below {middle:.2g})"
    reasons = Counter(one.reason for one in result.segments if one.reason)
    listed = ", ".join(f"{count:,}: {reason}" for reason, count in reasons.items())
    several = any(isinstance(one.key, tuple) for one in result.segments)
    theirs = "that of the coarser segment, or of all rows" if several else "that of all rows"
    return f"{said}.{f' The others have {theirs} ({listed}).' if listed else ''}"


def segment_table(
    found: Mapping[str, Evaluation], column: str, records: Mapping[str, Measure] | None = None
) -> Any:
    """The measures of segments as a table: those of the records, or the brief ones."""
    known = [measure for measure in MEASURES.values() if measure.brief]
    shown = known if records is None else list(records.values())
    titles = ("weight", "positive", *(measure.label for measure in shown))
    columns = [TableColumn(column, "left"), *map(TableColumn, titles)]
    rows = []
    for name, one in found.items():
        share = shown_percent(one.positive_weight / one.weight)
        values = (one.after.get(measure.name) for measure in shown)
        cells = ("–" if value is None else shown_value(value) for value in values)
        rows.append(TableRow((name, f"{one.weight:,.6g}", share, *cells)))
    return rich_table(ResultTable(columns, rows), box=box.SIMPLE_HEAD, pad_edge=False)


def _how(result: FitResult) -> str:
    folds = f"{result.folds} fold{'s' * (result.folds != 1)}"
    seen = "no row was judged by a calibrator that had seen it"
    return f"The figures after are out of fold ({folds}): {seen}."


def apply_command(calibrator: Path | None) -> str:
    name = "CALIBRATOR.json" if is_standard(calibrator) else quoted(str(calibrator))
    return f"calibrant apply {name} NEW.csv -o OUT.csv"


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
    shown = {
        "method": fitted.method or "(not said)",
        "parameters": ", ".join(given) or "none",
        "labels": _listed(repr(label) for label in fitted.classes),
    }
    if fitted.pos_label is not None:
        shown["probability of"] = repr(fitted.pos_label)
    shown["map" if isinstance(fitted.rule, Map) else "rule"] = _brief(repr(fitted.rule))
    known = {key: words for key, words in _PROVENANCE.items() if key in fitted.provenance}
    sizes = {fitted.provenance.get(key) for key in ("rows", "weight", "effective_size")}
    if len(sizes) == 1:  # every row counts once
        known = {key: words for key, words in known.items() if key not in _OF_WEIGHTS}
    more = fitted.provenance.keys() - _PROVENANCE.keys() - _APART
    known |= {key: key.replace("_", " ") for key in sorted(more)}
    shown |= {words: worded(fitted.provenance[key]) for key, words in known.items()}
    if isinstance(period := fitted.provenance.get("period"), tuple):
        shown[known["period"]] = " to ".join(map(str, period))
    shown |= _measured(fitted.provenance.get("measures"))
    return {_printable(words): _printable(text) for words, text in shown.items()}


#: facts that are not shown in a line of their own
_APART = {"measures", "leaderboard"}
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
    old, new = measures.get("before"), measures.get("after")
    if not isinstance(new, Mapping):
        return {}
    before = old if isinstance(old, Mapping) else {}
    how = str(measures.get("how", "")).split(":")[0]
    if "folds" in measures:
        how += f", {measures['folds']} folds"
    lines = {"measured": how} if how else {}
    for name, value in new.items():
        known = MEASURES.get(name) or CLASS_MEASURES.get(name)
        label = name.replace("_", " ") if known is None else known.label
        was = f"{_figure(before[name])} before, " if name in before else ""
        lines[f"  {label}"] = f"{was}{_figure(value)} after" if was else _figure(value)
    return lines


def _listed(words: Iterable[str]) -> str:
    """Words in a row, the last after an "and"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _figure(value: Any) -> str:
    """A measure; what is no finite number (a file may say anything) as it is."""
    return shown_value(value) if isinstance(value, float) else str(value)


def _brief(text: str, most: int = 160) -> str:
    """On one line, and not too long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _printable(text: str) -> str:
    """What a file says must not move the cursor, nor anything else of the terminal."""
    return text if text.isprintable() else repr(text)[1:-1]


def fit_document(result: FitResult, written: Mapping[str, Path | None]) -> dict[str, Any]:
    """The machine's answer to a fit."""
    fitted, evaluation = result.fitted, result.evaluation
    board = getattr(result.calibrator, "leaderboard_", None)
    return {
        **{name: None if path is None else str(path) for name, path in written.items()},
        "method": fitted.method,
        "params": thawed_json(fitted.params),
        "classes": list(fitted.classes),
        "pos_label": fitted.pos_label,
        "provenance": thawed_json(fitted.provenance),
        "folds": result.folds,
        "evaluation": None if evaluation is None else evaluation.to_dict(),
        "summary": None if evaluation is None else in_words(evaluation),
        "segments": [asdict(one) for one in result.segments] if result.segments else None,
        "headline": result.look.headline(result.names) or None,
        "verdict": result.verdict,
        "chosen": getattr(result.calibrator, "chosen_", None),
        "refused": getattr(result.calibrator, "refused_", None),
        "leaderboard": None if board is None else board.to_dict(),
        "advice": [one.to_dict() for one in result.advice],
    }


def write_fit(result: FitResult, written: Mapping[str, Path | None]) -> None:
    """The files of a fit: the calibrator, and the plot and the report if asked for."""
    output, plot, report = written["calibrator"], written["plot"], written["report"]
    picture = None if plot is None else result.picture(plot.suffix[1:].lower())
    if output is not None and not is_standard(output):
        save(result.fitted, output)
    if plot is not None and picture is not None:
        write_whole(plot, picture)
    if report is not None and output is not None:
        saved_as = None if is_standard(output) else output
        result.page(saved_as).save(report)
    if output is not None and is_standard(output):
        write_standard(to_json(result.fitted))
