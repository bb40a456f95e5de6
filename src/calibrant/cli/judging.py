"""The commands that judge: compare, report, evaluate and plot."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich import box

from calibrant.cli import jobs, reading, sources
from calibrant.cli.app import (
    as_command_options,
    run_with_status,
    say,
    say_json,
    show,
    tell,
    tell_advice,
    tell_first,
)
from calibrant.data.door import check_word
from calibrant.data.lazy import LazyRows
from calibrant.engines.open_engine import FEATURES, FileScores
from calibrant.errors import InputError, ParameterError
from calibrant.metrics.chance import IntervalOptions, read_interval_options
from calibrant.metrics.evaluating import Evaluation, evaluate_rows, in_words
from calibrant.metrics.evaluating import evaluate as evaluate_table
from calibrant.metrics.frames import OutsideError
from calibrant.metrics.groups import Multicalibration, multicalibration
from calibrant.metrics.measures import CLASS_MEASURES, MEASURES, Measure, Records, chosen_records
from calibrant.metrics.tables import Bins, check_bin_count
from calibrant.outputs import write_whole
from calibrant.result_tables import (
    ResultTable,
    TableColumn,
    TableRow,
    rich_table,
    shown_percent,
    shown_value,
)

if TYPE_CHECKING:
    from calibrant.reports.page import Report


Methods = Annotated[
    list[str] | None,
    typer.Option("--method", "-m", metavar="NAME", help="May be repeated; see: calibrant methods."),
]
Held = Annotated[
    int, typer.Option(min=2, help="Folds: parts of the rows that are held out in turn.")
]


def compare(
    files: sources.FileNames,
    score: sources.ScoreColumn = None,
    label: sources.LabelColumn = None,
    weight: sources.WeightColumn = None,
    method: Methods = None,
    pos_label: sources.PosLabel = None,
    direction: sources.Direction = "rising",
    cv: Held = 5,
    *,
    run: sources.LocalRun,
) -> None:
    """Judge methods on rows that they have not seen, beside no calibration at all.

    \b
    Examples:
      calibrant compare scores.csv --score p --label y
      calibrant compare scores.csv -s p -l y -m platt -m isotonic -m venn-abers
      calibrant compare scores.csv -s 'p_*' -l kind

    BLS and the scores as they are (uncalibrated) always take part.
    """
    with run.open(*files) as engine:
        source = reading.find_source(engine, files, score, label, weight, pos_label, run)
        source.refuse_beside()
        usual = jobs.COMPARED_CLASSES if source.several else jobs.COMPARED
        methods = [jobs.offered(name, several=source.several) for name in method or usual]
        sources.check_direction(direction, several=source.several)
        read = jobs.with_direction(reading.read_scores(source), direction)
    title = f"comparing {len(methods)} methods on {reading.size_of(read)}"
    auto = run_with_status(lambda: jobs.compare(read, methods, cv), title, run.json)
    names = reading.names_of(read.document)
    said = auto.explain(names=names)
    board = auto.leaderboard_
    if run.json:
        standings = None if board is None else board.to_dict()
        choice = {"chosen": auto.chosen_, "refused": auto.refused_, "verdict": said}
        advice = [one.to_dict() for one in auto.advice_]
        say_json({**choice, "leaderboard": standings, "advice": advice, **read.document})
        return
    first = tell_first(getattr(auto, "look_", None), names)
    if board is not None:
        show(board)
    tell(said.removeprefix(first).strip())
    jobs.tell_others(auto.advice_, first)


def report(
    files: sources.FileNames,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="HTML", help="Where the page goes.")
    ],
    score: sources.ScoreColumn = None,
    label: sources.LabelColumn = None,
    weight: sources.WeightColumn = None,
    method: Methods = None,
    pos_label: sources.PosLabel = None,
    direction: sources.Direction = "rising",
    cv: Held = 5,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    measures: sources.MoreMeasures = None,
    segment: Annotated[
        list[str] | None,
        typer.Option(
            "--segment",
            metavar="COL",
            help="Column of segments: does one map fit them all? Repeated: each combination.",
        ),
    ] = None,
    features: sources.Features = None,
    save: Annotated[
        Path | None, typer.Option(metavar="JSON", help="Save the calibrator that is taken, too.")
    ] = None,
    *,
    run: sources.LocalRun,
) -> None:
    """Write one page: the verdict, the leaderboard, diagrams, measures, advice, how to apply.

    \b
    Examples:
      calibrant report scores.csv --score p --label y -o report.html
      calibrant report scores.csv -s p -l y -m platt -m isotonic -o report.html --save c.json
      calibrant report scores.csv -o report.html --measures clinical
      calibrant report scores.csv -o report.html --segment country
      calibrant report loans.csv -o report.html --direction falling
      calibrant report scores.csv -o report.html --features age,country

    The page needs no network and no other file.
    """
    sources.check_places(
        {
            "--output": sources.OutputOption(output, sources.PAGES),
            "--save": sources.OutputOption(save),
        },
        files,
    )
    with run.open(*files) as engine:
        columns = (score, label, weight, pos_label)
        source = reading.find_source(engine, files, *columns, run, segment=segment)
        source.refuse_beside(measures=measures, features=features)
        usual = jobs.REPORTED_CLASSES if source.several else jobs.REPORTED
        methods = [jobs.offered(name, several=source.several) for name in method or usual]
        sources.check_direction(direction, several=source.several)
        if segment:
            source = reading.complete_roles(source)
            read = reading.read_segments(source)
            if features:
                rows = reading.read_features(source, features)
                read = replace(read, rows=rows.rows, features=rows.features)
        else:
            read = reading.read_scores(source, features or ())
        read = jobs.with_direction(read, direction)

    def judged() -> tuple[Report, str]:
        auto = jobs.compare(read, methods, cv)
        page = jobs.page_of(auto, read, title=title, saved_as=save, measures=measures)
        if features and page.fitted is not None:
            from calibrant.reports.page import worst_groups

            found = find_groups(read, page.fitted.map, level=page.level)
            page = replace(page, groups=worst_groups(found))
        if save is not None and pos_label is None:
            jobs.refuse_wrong_way(read, page.fitted)
        return page, page.to_html()

    # before the thread begins: one that is left behind may be amid an import that others wait for
    for name in ("calibrant.auto", "calibrant.reports.report", "calibrant.reports.page"):
        importlib.import_module(name)
    page, html = run_with_status(judged, f"judging {reading.size_of(read)}", run.json)
    write_whole(output, html)
    if save is not None:
        jobs.save_fitted(page.fitted, read.facts | jobs.time_facts(None), save)
    if run.json:
        where = {"output": str(output), "saved": None if save is None else str(save)}
        say_json(read.document | where | page.to_dict())
        return
    for sentence in page.verdict:
        tell(as_command_options(sentence, {}))
    tell_advice(page.advice)
    if page.groups is not None:
        tell(f"Where is it wrong? {page.groups.summary()}.")
    say()
    say("The page: ", (str(output), "bold"))
    if save is not None:
        say("The calibrator: ", (str(save), "bold"))


# --- The commands that measure and draw -----------------------------------------------------------

#: of intervals, where nothing else is asked for
LEVEL, REPLICATES = 0.95, 1000
#: the measures that look at bins
BINNED = ("ece", "mce", "top_label_ece", "top_label_mce", "classwise_ece", "classwise_mce")


def evaluate(
    files: sources.FileNames,
    prob: sources.ProbColumn = None,
    label: sources.LabelColumn = None,
    weight: sources.WeightColumn = None,
    raw: sources.RawColumn = None,
    segment: sources.SegmentColumn = None,
    pos_label: sources.PosLabel = None,
    measures: sources.Measures = None,
    features: sources.Features = None,
    bins: sources.BinsWord = "10",
    level: sources.Level = LEVEL,
    replicates: sources.Replicates = REPLICATES,
    weights: sources.Weighing = "importance",
    *,
    run: sources.EngineRun,
) -> None:
    """Measure how good probabilities are, and how good the scores behind them were.

    \b
    Examples:
      calibrant evaluate calibrated.csv
      calibrant evaluate calibrated.csv --prob probability --label churned
      calibrant evaluate calibrated.csv -p probability -l churned --raw score --json
      calibrant evaluate c.csv -p p -l y --weight w --weights counts --level 0.9
      calibrant evaluate 'day-*.parquet' -p p -l y --segment country
      calibrant evaluate calibrated.csv -p 'probability_*' --raw 'p_*' -l kind
      calibrant evaluate calibrated.csv --measures clinical --measures auc
      calibrant evaluate calibrated.csv --features age,country
    """
    found: Any = None
    others: Any = {"segment": segment, "raw": raw, "option": "--prob"}
    with run.open(*files, title="measuring") as engine:
        source = reading.find_source(engine, files, prob, label, weight, pos_label, run, **others)
        count = read_bins(bins)
        records = chosen_records(CLASS_MEASURES if source.several else MEASURES, measures)
        asked = records if measures else None
        if bins != "10" and not any(name in records for name in BINNED):
            raise ParameterError(
                "--bins is for ECE and MCE, which are not among the measures. Leave it out, or "
                "name them in --measures, too."
            )
        source.refuse_beside(features=features)
        if features:  # before anything is read
            engine.need_duckdb(FEATURES)
        sources.check_weighing(weights, weight)
        shown = {n: one for n, one in records.items() if measures or run.json or one.brief}
        _refuse_unused(source, shown, features, level, replicates, weights)
        if segment and raw:
            raise ParameterError("segments are measured without --raw: leave one of them out.")
        if segment and features:
            raise ParameterError("--segment goes without --features: name the column there, too.")
        intervals = read_interval_options(level or None, replicates, weights, 0)
        if source.several:
            read = reading.read_matrix(source)
            found, facts = jobs.measure_classes(read, count, intervals, asked), read.document
        elif segment:
            read = reading.read_segments(reading.complete_roles(source))
        else:
            source = reading.complete_roles(source)
            found, facts = measure(source, count, intervals, asked)
            if features:
                rows = reading.read_features(source, features)
                drawn: Any = {"level": level or LEVEL, "replicates": replicates, "weights": weights}
                found = replace(found, groups=find_groups(rows, **drawn))
    if segment:
        _each_segment(read, segment, count, asked, json=run.json)
        return
    if run.json:
        say_json({**found.to_dict(), **facts})
        return
    _print(found, reading.names_of(facts, "evaluate"))


def read_bins(word: str) -> Bins:
    """The option --bins as the library takes it."""
    return check_bin_count(int(word) if word.isdecimal() else word)


def _refuse_unused(
    source: sources.FileSource,
    records: Records,
    features: list[str] | None,
    level: float,
    replicates: int,
    weights: str,
) -> None:
    """Refuse the options of intervals that would change nothing."""
    given = {
        "--level": level != LEVEL,
        "--replicates": replicates != REPLICATES,
        "--weights": weights != "importance",
    }
    # of rows that weigh differently only curves are drawn
    tables = not source.weight or weights == "counts"
    drawn = [one for one in records.values() if (one.of_redrawn and tables) or one.of_curve]
    if source.segment:
        why = "segments are measured without intervals"
    elif features:
        return
    elif not level:
        why, given["--level"] = "--level 0 asks for no intervals", False
    elif source.several or not drawn:
        why = "none of these measures has an interval from random draws"
        given = {"--replicates": given["--replicates"]}
    else:
        return
    if found := [name for name, is_given in given.items() if is_given]:
        raise ParameterError(
            f"{why}, so {' and '.join(found)} would change nothing. Leave "
            f"{'it' if len(found) == 1 else 'them'} out."
        )


def _print(evaluation: Any, names: Any) -> None:
    """The table in words, too, after what must be known first and before the groups."""
    look, groups = evaluation.look, getattr(evaluation, "groups", None)
    first = tell_first(look, names)
    beside = {} if groups is None else {"groups": None}
    show(replace(evaluation, look=None, **beside), colour=not first)
    if (look is None or not look.useless) and (said := in_words(evaluation)):
        tell(said)
    if groups is not None:
        say()
        say(("Where is it wrong?", "bold"))
        show(groups)


#: segments that are shown; JSON has them all
SHOWN = 30


def _each_segment(
    read: FileScores, segment: list[str], bins: Bins, records: Records | None, *, json: bool
) -> None:
    """Print the measures of each segment, the largest first: those of the records, or the few most
    telling ones."""
    from calibrant.data.segments import segment_titles

    keys = sorted(read.by_segment, key=lambda key: -read.by_segment[key].total)
    measures = list(records) if records else None
    found = {
        name: evaluate_table(read.by_segment[key], bins=bins, level=None, measures=measures)
        for name, key in zip(segment_titles(keys), keys, strict=True)
    }
    if json:
        each = {name: one.to_dict() for name, one in found.items()}
        say_json({"segments": each, **read.document})
        return
    shown = dict(list(found.items())[:SHOWN])
    show(segment_table(shown, " / ".join(segment), records))
    if len(found) > SHOWN:
        tell(f"The {SHOWN} largest of {len(found):,} segments; --json has them all.")


def segment_table(
    found: Mapping[str, Evaluation], column: str, records: Mapping[str, Measure] | None = None
) -> Any:
    """The measures of segments as a table: those of the records, or the brief ones."""
    # a slope of few rows says little
    known = [one for one in MEASURES.values() if one.brief and "clinical" not in one.groups]
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


def measure(
    source: sources.FileSource,
    bins: Bins,
    intervals: IntervalOptions | None,
    records: Records | None = None,
) -> tuple[Evaluation, dict[str, Any]]:
    """The measures of a column of probabilities, and what is worth knowing of the files."""
    asked = source.rows(source.before)

    def ask(rows: LazyRows) -> tuple[Evaluation, int]:
        found = evaluate_rows(*rows.score_and_raw(), bins, intervals, source.cells, records)
        return found, rows.extent()[0] if source.weight else round(found.weight)

    try:
        (evaluation, count), coding = asked.ask(ask, source.positive)
    except OutsideError:
        asked.refuse_outside()  # which row it is, if that can be told
        raise
    reading.note_positive(source, coding)
    labels = {"classes": list(coding.classes), "pos_label": coding.pos_label}
    return evaluation, {**asked.facts(count), **source.facts, **labels}


def find_groups(
    given: FileScores, fitted_map: Callable[[Any], Any] | None = None, **drawing: Any
) -> Multicalibration:
    """Where the scores, or what a map makes of them, are wrong; ``drawing`` goes to the measure."""
    rows: Any = given.rows
    p = rows.scores if fitted_map is None else fitted_map(rows.scores).clip(0.0, 1.0)
    return multicalibration(
        rows.positive.astype(int),
        p,
        features=given.features,
        sample_weight=rows.weight,
        classes=[0, 1],
        **drawing,
    )


def plot(
    files: sources.FileNames,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Picture: .png, .svg or .pdf.")
    ],
    prob: sources.ProbColumn = None,
    label: sources.LabelColumn = None,
    weight: sources.WeightColumn = None,
    raw: sources.RawColumn = None,
    pos_label: sources.PosLabel = None,
    kind: Annotated[
        str, typer.Option(metavar="reliability|decision", help="What to draw.")
    ] = "reliability",
    thresholds: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH", help="Of a decision curve, such as 0.05:0.5; default: 0.01:0.99."
        ),
    ] = None,
    curve: Annotated[
        str,
        typer.Option(
            metavar="binned|isotonic|smooth|belt", help="The curve of a reliability diagram."
        ),
    ] = "binned",
    bins: sources.BinsWord = "10",
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the picture.")] = None,
    *,
    run: sources.LocalRun,
) -> None:
    """Draw what was predicted against what happened, or what acting on it is worth.

    A reliability diagram or, with --kind decision, the net benefit at each threshold.

    \b
    Examples:
      calibrant plot calibrated.csv --prob probability --label churned -o r.png
      calibrant plot calibrated.csv -p probability --raw score -l churned -o r.svg
      calibrant plot calibrated.csv --kind decision --thresholds 0.05:0.4 -o d.png
      calibrant plot calibrated.csv --curve belt -o belt.png
      calibrant plot calibrated.csv -p 'probability_*' --raw 'p_*' -l kind -o r.png
    """
    sources.check_places({"--output": sources.OutputOption(output, sources.PICTURES)}, files)
    check_word("--kind", kind, tuple(KINDS))
    check_word("--curve", curve, CURVES)
    if thresholds is not None and kind != "decision":
        raise ParameterError("--thresholds goes with --kind decision. Leave it out, or add that.")
    if bins != "10" and kind == "decision":
        raise ParameterError("a decision curve has no bins: leave --bins out.")
    if curve != "binned" and (kind == "decision" or bins != "10"):
        raise ParameterError(
            f"--curve {curve} is of a reliability diagram and has no bins. Leave --kind and --bins "
            "out."
        )
    ends = None if thresholds is None else read_thresholds(thresholds)
    with run.open(*files) as engine:
        source = reading.find_source(
            engine, files, prob, label, weight, pos_label, run, raw=raw, option="--prob"
        )
        count = read_bins(bins)
        source.refuse_beside(kind=kind == "decision")
        read = reading.read_scores(source)
    asked: Any = {"format": output.suffix[1:].lower(), "title": title}
    if kind == "decision":
        picture = draw_decision(read, source.before, ends, **asked)
    else:
        picture = jobs.draw(read, bins=count, curve=curve, **asked)
    write_whole(output, picture)
    if run.json:
        say_json({"output": str(output), **read.facts})
    else:
        say(f"{KINDS[kind]} written to ", (str(output), "bold"))


#: the curves of a reliability diagram
CURVES = ("binned", "isotonic", "smooth", "belt")
#: what `plot` draws, and what it is called
KINDS = {"reliability": "Reliability diagram", "decision": "Decision curve"}


def read_thresholds(text: str) -> tuple[float, float]:
    """The ends LOW:HIGH of the thresholds of a decision curve."""
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        low = high = math.nan
    if not 0.0 < low < high < 1.0:
        raise ParameterError(
            "--thresholds must be two numbers with a colon between them, such as 0.05:0.5, above 0 "
            f"and below 1, the smaller first, but {text!r} came."
        )
    return low, high


#: thresholds of a drawn decision curve
STEPS = 200


def draw_decision(
    read: FileScores, raw: str | None, ends: tuple[float, float] | None, *, format: str, title: Any
) -> bytes:
    """The decision curves of a column of scores, and of the ``raw`` one, between two thresholds."""
    from calibrant.diagrams.decision import decision_curve
    from calibrant.diagrams.draw.figures import render
    from calibrant.diagrams.draw.others import decision_diagram

    columns = {read.facts["score_column"]: read.data}
    if raw is not None:
        columns[raw] = read.before
    for name, table in columns.items():
        columns[name] = table.as_probabilities()
        if columns[name] is None:
            raise InputError(
                f"a decision curve needs probabilities, but {name!r} holds points. Leave it out, "
                "or calibrate it first."
            )
    thresholds = None if ends is None else np.linspace(*ends, STEPS)
    curve = decision_curve(None, columns, thresholds=thresholds)
    return render(decision_diagram(curve, title=title), format)
