"""The work behind the commands: files in, files and values out, nothing printed."""

from __future__ import annotations

import difflib
import importlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from calibrant.data.table import ScoreTable
from calibrant.engines.duckdb import FileTable, Session, read_table, whole_file
from calibrant.errors import InputError, ParameterError
from calibrant.files import load, save
from calibrant.fitted import Fitted
from calibrant.registry import METHODS

if TYPE_CHECKING:
    from calibrant.advice import Advice
    from calibrant.auto import AutoCalibrator
    from calibrant.base import Calibrator
    from calibrant.metrics import Evaluation
    from calibrant.reports.value import Report

__all__ = [
    "COMPARED",
    "Columns",
    "FitResult",
    "check_folds",
    "check_methods",
    "check_output",
    "compare_read",
    "draw",
    "evaluate_files",
    "fit_read",
    "load_map",
    "make_calibrator",
    "page_of",
    "parameters",
    "read_files",
    "report_read",
    "save_fitted",
    "write",
]

Files = Sequence[str | os.PathLike[str]]

#: above this many distinct scores the out-of-fold estimate is made on a pooled table
MOST_CELLS, POOLED_CELLS = 200_000, 100_000
#: parameters that the command line fills in itself (--folds is cv), or that are no plain values
OWN = ("pos_label", "classes", "cv", "candidates", "progress")
#: what every comparison holds without being asked
ALWAYS = ("auto", "identity", "bls")
#: and what one holds by default: fast methods of each kind
COMPARED = (
    "platt",
    "beta",
    "quadratic",
    "temperature",
    "spline",
    "isotonic",
    "venn-abers",
    "histogram",
    "bbq",
    "enir",
    "elite",
)
#: and what a page shows beside them
REPORTED = ("platt", "beta", "isotonic", "venn-abers", "enir")
PICTURES = (".png", ".svg", ".pdf")


# --- methods ------------------------------------------------------------------------------------


def calibrator_class(method: str) -> type[Calibrator]:
    """The class behind a name on the command line."""
    name = method.strip().lower().replace("_", "-")
    if name not in METHODS:
        near = difflib.get_close_matches(name, METHODS, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ParameterError(
            f"the method must be one of {', '.join(METHODS)}, but {method!r} came.{hint}"
        )
    module, cls, _ = METHODS[name]
    found: type[Calibrator] = getattr(importlib.import_module(module), cls)
    return found


def parameters(method: str) -> dict[str, Any]:
    """The parameters of a method and their defaults."""
    defaults = calibrator_class(method)().get_params(deep=False)
    return {name: value for name, value in defaults.items() if name not in OWN}


def make_calibrator(method: str, settings: Sequence[str]) -> Calibrator:
    """An unfitted calibrator from its name and ``key=value`` words.

    >>> make_calibrator("isotonic", ["kind=centred"])
    Isotonic(kind='centred')
    """
    from sklearn.base import clone

    known = parameters(method)
    chosen = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ParameterError(f"a parameter must be written key=value, but {setting!r} came.")
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            allowed = f"takes {', '.join(known)}" if known else "takes no parameters"
            raise ParameterError(f"{method} {allowed}, but {key!r} came.{hint}")
        chosen[key] = _value(value)
    calibrator = calibrator_class(method)(**chosen)
    # a trial on two scores refuses a wrong value now, not after hours of reading
    clone(calibrator).fit_table(ScoreTable.from_counts([0.25, 0.75], [2, 1], [1, 2]))
    return calibrator


def _value(word: str) -> Any:
    """A number, true, false or null as JSON has it; all else is a word."""
    try:
        return json.loads(word)
    except json.JSONDecodeError:
        return word


# --- jobs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FitResult:
    """A fitted calibrator, what it was fitted to, and how it does on rows it has not seen."""

    fitted: Fitted
    read: FileTable
    folds: int
    evaluation: Evaluation | None
    before: ScoreTable
    after: ScoreTable | None
    calibrator: Calibrator
    advice: tuple[Advice, ...] = ()

    @property
    def verdict(self) -> str | None:
        """The automatic choice in words, if there was one."""
        return self.calibrator.explain() if hasattr(self.calibrator, "explain") else None


@dataclass(frozen=True)
class Columns:
    """The names of the columns to read, and which label is positive."""

    score: str
    label: str
    weight: str | None = None
    pos_label: str | None = None


def read_files(
    session: Session, files: Files, columns: Columns, *, probabilities: bool = False
) -> FileTable:
    """The score table of files."""
    return read_table(
        files,
        score=columns.score,
        label=columns.label,
        weight=columns.weight,
        pos_label=columns.pos_label,
        probabilities=probabilities,
        session=session,
    )


def check_folds(folds: int) -> None:
    """Refuse a number of folds before anything is read."""
    if folds < 0 or folds == 1:
        raise ParameterError(f"folds must be at least 2, or 0 for no estimate, but {folds} came.")


def fit_read(read: FileTable, calibrator: Calibrator, *, folds: int = 5) -> FitResult:
    """Fit a calibrator, and estimate by cross-validation what it will do for new rows."""
    import numpy as np

    from calibrant.advice import advise_table
    from calibrant.metrics import evaluate
    from calibrant.reports.within import within_folds

    check_folds(folds)
    calibrator.set_params(classes=list(read.classes), pos_label=read.pos_label)
    if folds and "cv" in calibrator.get_params():
        calibrator.set_params(cv=folds)
    fitted = calibrator.fit_table(read.table).to_fitted()
    fitted = replace(fitted, provenance={**fitted.provenance, **read.facts})
    table = read.table
    advice = advise_table(table, calibrator)
    if not folds or _too_few(table):
        return FitResult(fitted, read, folds, None, table, None, calibrator, advice)
    values = len(np.unique(fitted.map(table.scores)))
    if len(table) > MOST_CELLS:
        table = table.pool(POOLED_CELLS)
    seen = _unseen(calibrator, table, folds)
    evaluation = within_folds(
        evaluate(seen.after, raw=table, level=None),
        *seen.aucs,
        scores=len(read.table),
        values=values,
    )
    return FitResult(fitted, read, seen.folds, evaluation, table, seen.after, calibrator, advice)


class Unseen(NamedTuple):
    """Predictions of rows that were held out, AUC within folds before and after, and the folds."""

    after: ScoreTable
    aucs: tuple[float | None, float | None]
    folds: int


def _unseen(calibrator: Calibrator, table: ScoreTable, folds: int) -> Unseen:
    """What the calibrator says of rows that it has not seen; the automatic choice knows already."""
    from sklearn.base import clone

    from calibrant.auto.judge import judge_maps
    from calibrant.auto.parts import parts_of_table
    from calibrant.calibrators.identity import Identity

    board = getattr(calibrator, "leaderboard_", None)
    if board is not None:
        aucs = (board["identity"].auc, board.chosen.auc)
        return Unseen(calibrator.oof_[calibrator.chosen_], aucs, board.folds)
    parts, _ = parts_of_table(table, folds, 0)
    before = Identity().fit_table(table).map_
    first, _ = judge_maps([before] * len(parts), parts, ranks=True)
    maps = [clone(calibrator).fit_table(part.rest).map_ for part in parts]
    judged, after = judge_maps(maps, parts)
    return Unseen(after, (first.auc, judged.auc), len(parts))


def check_methods(methods: Sequence[str]) -> list[str]:
    """The names of methods as the registry has them, or an error before anything is read."""
    for name in methods:
        calibrator_class(name)
    return [name.strip().lower().replace("_", "-") for name in methods]


def compare_read(read: FileTable, methods: Sequence[str], folds: int) -> AutoCalibrator:
    """The automatic choice among methods by name, fitted and judged."""
    from calibrant.auto import AutoCalibrator

    names = [name for name in dict.fromkeys(methods) if name not in ALWAYS]
    candidates = {name: make_calibrator(name, []) for name in names}
    auto = AutoCalibrator(
        candidates=candidates, cv=folds, classes=list(read.classes), pos_label=read.pos_label
    )
    return auto.fit_table(read.table)


def report_read(
    read: FileTable,
    methods: Sequence[str],
    folds: int,
    *,
    title: str | None = None,
    saved_as: Path | None = None,
) -> Report:
    """The page on the scores of files: the automatic choice among some methods."""
    auto = compare_read(read, methods or REPORTED, folds)
    return page_of(auto, read, title=title, saved_as=saved_as)


def page_of(
    calibrator: Calibrator,
    read: FileTable,
    *,
    title: str | None = None,
    saved_as: Path | None = None,
) -> Report:
    """The page on a calibrator that was fitted to a table of files."""
    from calibrant.reports.making import report, report_of

    name = "calibrator.json" if saved_as is None else str(saved_as)
    source = {"files": ", ".join(read.facts["files"]), "rows": f"{read.facts['rows']:,}"}
    names = {"score_name": read.facts["score_column"], "label_name": read.facts["label_column"]}
    options: dict[str, Any] = {"title": title, "source": source, "saved_as": name, **names}
    if _too_few(read.table):
        raise InputError("a report needs at least two rows of each class.")
    if getattr(calibrator, "leaderboard_", None) is not None:
        return report_of(calibrator, read.table, **options)
    options |= {"classes": list(read.classes), "pos_label": read.pos_label}
    return report(read.table, calibrator=calibrator, **options)


def save_fitted(fitted: Fitted | None, read: FileTable, path: Path) -> None:
    """A calibrator, with what is known of the files that it was fitted to."""
    if fitted is None:
        raise InputError("there is no calibrator to save.")
    save(replace(fitted, provenance={**fitted.provenance, **read.facts}), path)


def _too_few(table: ScoreTable) -> bool:
    """Whether a class has no second case, so that a fold would leave nothing to learn from."""
    counts = ((table.negative, table.negative_sq), (table.positive, table.positive_sq))
    return any(w.sum() ** 2 < 1.999 * w2.sum() or not w.any() for w, w2 in counts)


def evaluate_files(
    session: Session, files: Files, columns: Columns, raw: str | None = None
) -> tuple[FileTable, ScoreTable | None]:
    """The table of a column of probabilities and, if asked for, that of the scores behind it."""
    read = read_files(session, files, columns, probabilities=True)
    if raw is None:
        return read, None
    return read, read_files(session, files, replace(columns, score=raw)).table


# --- outputs ------------------------------------------------------------------------------------


def check_output(path: Path | None, endings: Sequence[str] = ()) -> None:
    """Refuse a place that cannot be written to before hours of work, not after."""
    if path is None:
        return
    if path.is_dir():
        raise InputError(f"the output must be a file, but {path} is a folder.")
    if not path.parent.is_dir():
        raise InputError(f"the output's folder {path.parent} does not exist. Make it first.")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"the output's folder {path.parent} cannot be written to.")
    if endings and path.suffix.lower() not in endings:
        raise InputError(f"{path.name} must end in {' or '.join(endings)}.")


def load_map(path: Path) -> Fitted:
    """A calibrator of one score from its file."""
    fitted = load(path)
    if not isinstance(fitted, Fitted):
        raise InputError(
            f"{path} holds {fitted.method}, which needs more of each row than its score. Apply it "
            "in Python: calibrant.load(...).predict_proba(scores, ...)."
        )
    return fitted


def draw(
    after: ScoreTable,
    before: ScoreTable | None = None,
    *,
    format: str = "png",
    bins: int = 10,
    fitted_map: Fitted | None = None,
    title: str | None = None,
) -> bytes:
    """A reliability diagram as the bytes of a file."""
    from calibrant.diagrams.draw import reliability_diagram, render

    figure = reliability_diagram(after, raw=before, bins=bins, fitted_map=fitted_map, title=title)
    return render(figure, format)


def write(path: Path, content: bytes | str) -> None:
    """A file, whole or not at all."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    with whole_file(path) as temporary:
        temporary.write_bytes(data)
