"""What commands write for people to look at: pictures and pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.cli.first_words import names_of
from calibrant.cli.reading import file_facts
from calibrant.data.score_kinds import as_probabilities
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.engines.rows_of_classes import FileMatrix
from calibrant.engines.rows_of_files import FileTable
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.fitted import Fitted
from calibrant.estimators.saved_labels import label_array
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.first_look import first_look

if TYPE_CHECKING:
    from calibrant.estimators.base import Calibrator
    from calibrant.reports.report_value import Report

#: panels of classes that a picture has
PANELS = 11
#: thresholds of a drawn decision curve
STEPS = 200


# --- pictures, as the bytes of a file -----------------------------------------------------------


def draw(
    after: ScoreTable,
    before: ScoreTable | None = None,
    *,
    format: str = "png",
    bins: Bins = 10,
    fitted_map: Fitted | None = None,
    title: str | None = None,
) -> bytes:
    """A reliability diagram."""
    from calibrant.diagrams.draw import reliability_diagram, render

    figure = reliability_diagram(after, raw=before, bins=bins, fitted_map=fitted_map, title=title)
    return render(figure, format)


def draw_classes(
    after: ScoreMatrix,
    before: ScoreMatrix | None,
    classes: Sequence[Any],
    *,
    format: str = "png",
    bins: Bins = 10,
    title: str | None = None,
) -> bytes:
    """A reliability diagram of the top label and of each class, the heaviest of many."""
    from calibrant.diagrams.draw import render
    from calibrant.diagrams.draw.panels import class_diagram

    heaviest = np.argsort(-after.class_weight, kind="stable")[:PANELS]
    figure = class_diagram(
        label_array(tuple(classes))[after.codes],
        after.scores,
        classes=list(classes),
        show=[classes[column] for column in sorted(heaviest.tolist())],
        bins=bins,
        sample_weight=after.weight,
        raw=None if before is None else before.scores,
        title=title,
    )
    return render(figure, format)


def draw_decision(
    tables: Mapping[str, ScoreTable],
    ends: tuple[float, float] | None = None,
    *,
    format: str = "png",
    title: str | None = None,
) -> bytes:
    """The decision curves of columns of scores, between two thresholds."""
    from calibrant.diagrams.decision import decision_curve
    from calibrant.diagrams.draw import decision_diagram, render

    read = {name: as_probabilities(table) for name, table in tables.items()}
    for name, table in read.items():
        if table is None:
            raise InputError(
                f"a decision curve needs probabilities, but {name!r} holds points. Leave it out, "
                "or calibrate it first."
            )
    thresholds = None if ends is None else np.linspace(*ends, STEPS)
    curve = decision_curve(None, read, thresholds=thresholds)
    return render(decision_diagram(curve, title=title), format)


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


# --- pages --------------------------------------------------------------------------------------


def page_of(
    calibrator: Calibrator,
    read: FileTable,
    *,
    title: str | None = None,
    saved_as: Path | None = None,
    measures: Sequence[str] | None = None,
) -> Report:
    """The page on a calibrator that was fitted to a table of files."""
    from calibrant.reports.make import calibration_report, report_of

    options: dict[str, Any] = {"title": title, "measures": measures, **page_words(read, saved_as)}
    if too_few(read.table):
        first = first_look(read.table).headline(names_of(file_facts(read)))
        raise InputError(f"{first} A report needs at least two rows of each class.".strip())
    if getattr(calibrator, "leaderboard_", None) is not None:
        return report_of(calibrator, read.table, **options)
    options |= {"classes": list(read.classes), "pos_label": read.pos_label}
    return calibration_report(read.table, calibrator=calibrator, **options)


def page_words(read: FileTable | FileMatrix, saved_as: Path | None) -> dict[str, Any]:
    """What a page calls the columns, the files and the calibrator."""
    facts = read.facts
    columns = facts["score_columns"] if isinstance(read, FileMatrix) else [facts["score_column"]]
    return {
        "score_name": ", ".join(columns[:3]) + (", …" if len(columns) > 3 else ""),
        "label_name": facts["label_column"],
        "source": {"files": ", ".join(facts["files"]), "rows": f"{facts['rows']:,}"},
        "saved_as": "calibrator.json" if saved_as is None else str(saved_as),
    }


def too_few(table: ScoreTable) -> bool:
    """Whether a class has fewer than two rows, so that none of it is left when one is held out."""
    counts = ((table.negative, table.negative_sq), (table.positive, table.positive_sq))
    return any(w.sum() ** 2 < 1.999 * w2.sum() or not w.any() for w, w2 in counts)
