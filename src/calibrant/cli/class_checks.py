"""The check of a calibrator of several classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.cli import class_jobs, class_reading
from calibrant.cli.class_reading import ClassRoles
from calibrant.cli.console import command, run_with_status, say, say_json, show, tell
from calibrant.cli.first_words import class_names
from calibrant.cli.jobs import file_facts
from calibrant.cli.options import EngineOptions
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.fitted import Fitted
from calibrant.maps import VectorMap
from calibrant.shell_words import quoted


class ClassCheck(NamedTuple):
    """How classes are checked; see `check_class_drift`."""

    level: float
    least: float
    weights: str


class CheckedAgainst(NamedTuple):
    """What new rows are checked against: a calibrator and its file, or old rows; and where an
    updated calibrator should go."""

    fitted: Fitted | None
    path: Path | None
    rows: Sequence[str] | None
    update: Path | None

    def calibrator(self) -> tuple[Fitted, Path]:
        """The calibrator of several classes; an error where it is not the only reference."""
        if self.fitted is None or self.path is None or self.rows is not None:
            raise ParameterError(
                "with several classes new rows are checked against a calibrator, not against old "
                "rows: what one column means depends on the others, so that scores which only "
                "moved would look like a change. Fit a calibrator to the old rows, and name it "
                "alone, with --calibrator JSON."
            )
        if not isinstance(self.fitted.map, VectorMap):
            raise InputError(
                f"{self.path} reads one column of scores, but several were named. Name one."
            )
        if self.update is not None:
            raise ParameterError(
                "a calibrator of several classes cannot be updated by a shift or a line: leave "
                "--update out, and fit one anew to new rows if a change is found."
            )
        return self.fitted, self.path


def check_classes(
    files: Sequence[str],
    reference: CheckedAgainst,
    roles: ClassRoles,
    place: EngineOptions,
    asked: ClassCheck,
    json: bool,
) -> bool:
    """Check, print, and say whether something is to be done."""
    from calibrant.monitor.class_drift import check_class_drift

    fitted, path = reference.calibrator()
    label = roles.label or fitted.provenance.get("label_column")
    roles = roles._replace(label=label if isinstance(label, str) else "")
    read = class_reading.open_and_read(files, roles, place, json, fitted=(fitted, path))
    drift = run_with_status(
        lambda: check_class_drift(
            fitted,
            read.matrix.scores,
            class_jobs.labels_of(read.matrix, read.classes),
            sample_weight=read.matrix.weight,
            **asked._asdict(),
        ),
        f"checking {len(read.classes)} classes",
        json,
    )
    found, todo = drift.in_words(class_names(read, "check"))
    if json:
        say_json({**drift.to_dict(), "summary": f"{found} {todo}", **file_facts(read)})
    else:
        show(drift)
        say()
        tell((found, "bold"))
        tell(todo)
        if drift.recommendation != "none" and not (drift.look and drift.look.useless):
            say("Fit one: ", command(_fit_command(files, read.facts, read.classes)))
    return drift.recommendation != "none"


def _fit_command(files: Sequence[str], facts: dict[str, Any], classes: Sequence[Any]) -> str:
    pairs = zip(classes, facts["score_columns"], strict=True)
    scores = [word for label, column in pairs for word in ("-s", f"{label}={column}")]
    words = ["calibrant", "fit", *files, *scores, "-l", facts["label_column"]]
    return " ".join(map(quoted, [*words, "-o", "calibrator.json"]))
