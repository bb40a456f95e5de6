"""Calibrators that commands are given as files: what people name in their place, and the columns
that they were fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrant.cli.sources import Segment, read_segment
from calibrant.engines.files.data_files import KINDS, is_calibrator
from calibrant.engines.row_fitted import RowFitted
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.files import load
from calibrant.local.rule import LocalFitted
from calibrant.shell_words import quoted


def load_any(path: Path) -> Fitted | LocalFitted:
    """A calibrator of any kind from its file; files of data are told as such."""
    if path.is_dir():
        raise InputError(f"a calibrator must be a file, but {path} is a folder.")
    if (
        path.suffix.lower() in KINDS.keys() - {".json"}
        and path.exists()
        and not is_calibrator(path)
    ):
        raise InputError(
            f"a calibrator must be the JSON file that calibrant fit writes, but {path} looks like "
            "a file of data."
        )
    return load(path)


def load_map(path: Path, *, by_row: bool = False) -> Fitted:
    """A calibrator of scores from its file; with ``by_row`` also one of trees on other columns."""
    loaded = load_any(path)
    fitted = loaded if isinstance(loaded, Fitted) else loaded.plain
    if fitted is None and isinstance(loaded, LocalFitted) and by_row:
        fitted = RowFitted.of(loaded)
    if fitted is None:
        raise InputError(
            f"{path} holds {loaded.method}, which needs more of each row than its score. Apply it "
            "in Python: calibrant.load(...).predict_proba(scores, ...)."
        )
    return fitted


def refuse_swapped(calibrator: Path | None, files: Sequence[str], order: str) -> None:
    """Refuse a calibrator among the files of data, unless its own place is taken by another one.

    ``order`` is the command as it should be, with ``{calibrator}`` and ``{files}`` in it.
    """
    found = [name for name in files if is_calibrator(name)]
    if not found or (calibrator is not None and is_calibrator(calibrator)):
        return
    data = [name for name in files if name not in found]
    data += [] if calibrator is None else [str(calibrator)]
    came = f", and {data[0]} does not" if data else ""
    meant = order.format(
        calibrator=quoted(found[0]), files=" ".join(map(quoted, data)) if data else "FILE"
    )
    raise InputError(f"{found[0]} looks like a calibrator{came}. Did you mean: calibrant {meant}")


def score_column(fitted: Fitted, asked: Sequence[str]) -> str:
    """The one column of scores: as asked for, or as in the fit; "" where neither says it."""
    if len(asked) > 1:
        raise InputError(
            f"this calibrator reads one column of scores, but {len(asked)} were named."
        )
    known = asked[0] if asked else fitted.provenance.get("score_column")
    return known if isinstance(known, str) else ""


def segment_column(fitted: Fitted, asked: list[str] | None) -> Segment:
    """The columns of segments: as asked for, or as in the fit; None for a calibrator without."""
    if asked or fitted.map.segments is None:
        return read_segment(asked)
    known = fitted.provenance.get("segment_column")
    if isinstance(known, tuple) and all(isinstance(name, str) for name in known):
        return known
    if not isinstance(known, str):
        raise InputError(
            "the calibrator has a map for each segment, but does not know their column. Name it "
            "with --segment COL, several from coarse to fine."
        )
    return known
