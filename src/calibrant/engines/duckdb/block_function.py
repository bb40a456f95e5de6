"""The function that DuckDB calls for blocks of rows: scores in, probabilities out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.data.distributions import are_distributions
from calibrant.data.score_range import ScoreRange
from calibrant.data.segment_column import NewSegments
from calibrant.engines.range_watch import RangeWatch
from calibrant.engines.row_fitted import CategoryFamilies, RowFitted
from calibrant.engines.segment_texts import SegmentKeys
from calibrant.errors import import_extra
from calibrant.estimators.fitted import Fitted
from calibrant.maps import VectorMap


class StopError(Exception):
    """A score cannot be calibrated; which one is found out afterwards."""


class BlockWatch(RangeWatch):
    """Watches scores that come block by block: refuses some, moves some, counts the far ones."""

    def __init__(self, known: ScoreRange | None, on_range: str) -> None:
        super().__init__(known, on_range)
        self.blocks: list[tuple[int, int, int]] = []  # threads append to it
        self.families = CategoryFamilies()

    def look(self, scores: Any) -> Any:
        """The scores for the map."""
        known = self.known
        if known is None:
            return scores
        if known.probabilities and ((scores < 0.0) | (scores > 1.0)).any():
            if self.refuses:
                raise StopError
            scores = np.clip(scores, 0.0, 1.0)
        ends = int((scores < known.low).sum()), int((scores > known.high).sum())
        self.blocks.append((*ends, scores.size))
        return scores

    def warn_at_end(self, column: str) -> None:
        """Warn if most of all scores lay beyond those of the fit."""
        below, above, rows = (sum(part) for part in zip((0, 0, 0), *self.blocks, strict=True))
        self.warn(below, above, rows, column)


def calibrating(
    fitted: Fitted,
    keys: SegmentKeys | None,
    allow_missing: bool,
    watch: BlockWatch,
    new: NewSegments | None = None,
) -> Callable[..., Any]:
    """The map as a function of Arrow columns: NULL is a missing value, infinity a wrong one."""
    pyarrow = import_extra("pyarrow", extra="cli")
    if isinstance(fitted.map, VectorMap):
        return _of_rows(fitted, fitted.map.n_classes, allow_missing, watch)

    def answer(scores: Any, known: Any, calibrate: Callable[[Any], Any]) -> Any:
        usable = np.isfinite(scores) & known
        _check_missing(usable, scores, allow_missing)
        result = np.zeros(len(scores))
        if usable.any():
            result[usable] = calibrate(usable)
        return pyarrow.array(result, mask=~usable)

    def of_scores(column: Any) -> Any:
        scores = column.to_numpy(zero_copy_only=False)

        def probabilities(usable: Any) -> Any:
            return fitted.calibrate(watch.look(scores[usable]), on_range="allow")

        return answer(scores, True, probabilities)

    if isinstance(fitted, RowFitted):
        return _of_features(fitted, watch, answer)
    if keys is None:
        return of_scores
    by_text, seen, lock = keys.map, set(keys.map.seen), threading.Lock()

    def of_segment(column: Any, segment: Any) -> Any:
        return of_segments(column, segment)

    def of_segments(column: Any, *segments: Any) -> Any:
        scores, *names = (c.to_numpy(zero_copy_only=False) for c in (column, *segments))
        known = np.array([None not in row for row in zip(*names, strict=True)], dtype=bool)
        if new is not None and seen:
            with lock:
                some = [own[known] for own in names]
                new.look(some[0] if len(some) == 1 else zip(*some, strict=True), seen)

        def probabilities(usable: Any) -> Any:
            return by_text(watch.look(scores[usable]), [own[usable] for own in names])

        return answer(scores, known, probabilities)

    return of_segment if len(keys.columns) == 1 else of_segments


def _check_missing(usable: Any, scores: Any, allow_missing: bool) -> None:
    """Stop where a score is infinite, or where one is missing and none may be."""
    if not usable.all() and (not allow_missing or np.isinf(scores).any()):
        raise StopError


def _of_features(
    fitted: RowFitted, watch: BlockWatch, answer: Callable[..., Any]
) -> Callable[..., Any]:
    """Trees on further columns: missing numbers are NULL, infinite ones are wrong."""

    def of_features(*columns: Any) -> Any:
        scores, *given = (one.to_numpy(zero_copy_only=False) for one in columns)
        given = [v.astype(float) if v.dtype != object else v for v in given]
        if any(v.dtype != object and np.isinf(v).any() for v in given):
            raise StopError

        def probabilities(usable: Any) -> Any:
            some = [values[usable] for values in given]
            return fitted.of_columns(watch.look(scores[usable]), some, watch.families)

        return answer(scores, True, probabilities)

    return of_features


def takes_distributions(fitted: Fitted, on_range: str) -> bool:
    """Whether the scores of a row must be probabilities that sum to one."""
    reads = fitted.map.reads if isinstance(fitted.map, VectorMap) else "score"
    return reads == "probability" and on_range != "allow"


def _of_rows(
    fitted: Fitted, classes: int, allow_missing: bool, watch: BlockWatch
) -> Callable[..., Any]:
    """The map of several classes: a column for each score in, lists of probabilities out."""
    pyarrow = import_extra("pyarrow", extra="cli")
    distributions = takes_distributions(fitted, watch.on_range)

    def of_rows(*columns: Any) -> Any:
        scores = np.column_stack([c.to_numpy(zero_copy_only=False) for c in columns])
        usable = np.isfinite(scores).all(axis=1)
        _check_missing(usable, scores, allow_missing)
        result = np.zeros((len(scores), classes))
        if usable.any():
            seen = watch.look(scores[usable])
            if distributions and not are_distributions(seen):
                raise StopError
            result[usable] = fitted.predict_proba(seen, on_range="allow")
        flat = pyarrow.array(result.ravel())
        return pyarrow.FixedSizeListArray.from_arrays(flat, classes, mask=pyarrow.array(~usable))

    return of_rows
