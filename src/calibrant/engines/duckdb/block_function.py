"""The function that DuckDB calls for blocks of rows: scores in, probabilities out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calibrant.array_types import Flags
from calibrant.data.distributions import are_distributions
from calibrant.data.score_range import ScoreRange
from calibrant.data.segment_column import NewSegments
from calibrant.engines.apply_options import ApplyOptions
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
    options: ApplyOptions,
    watch: BlockWatch,
    new: NewSegments | None = None,
) -> Callable[..., Any]:
    """The calibrator as a function of Arrow columns: scores, and then segments or features.

    NULL is a missing score or segment, infinity a wrong number. Of several classes each row gets a
    list of probabilities.
    """
    pyarrow = import_extra("pyarrow", extra="cli")
    classes = fitted.map.n_classes if isinstance(fitted.map, VectorMap) else None
    allow_missing = options.on_missing == "null"
    probabilities = _probabilities(fitted, keys, options, watch)
    complete = _complete(keys, new)

    def of_block(*columns: Any) -> Any:
        arrays = [column.to_numpy(zero_copy_only=False) for column in columns]
        scores, *beside = arrays if classes is None else [np.column_stack(arrays)]
        finite = np.isfinite(scores)
        usable = (finite if classes is None else finite.all(axis=1)) & complete(beside)
        if not usable.all() and (not allow_missing or np.isinf(scores).any()):
            raise StopError
        result = np.zeros(len(usable) if classes is None else (len(usable), classes))
        if usable.any():
            given = watch.look(scores[usable])
            result[usable] = probabilities(given, [own[usable] for own in beside])
        if classes is None:
            return pyarrow.array(result, mask=~usable)
        flat = pyarrow.array(result.ravel())
        return pyarrow.FixedSizeListArray.from_arrays(flat, classes, mask=pyarrow.array(~usable))

    return of_block


def _complete(
    keys: SegmentKeys | None, new: NewSegments | None
) -> Callable[[Sequence[Any]], Flags | bool]:
    """Whether rows have all that they need beside the score; rows of new segments are counted.

    Features may be missing, but an infinite one is a wrong number.
    """

    def of_features(columns: Sequence[Any]) -> bool:
        if any(own.dtype != object and np.isinf(own).any() for own in columns):
            raise StopError
        return True

    if keys is None:
        return of_features
    seen, lock = set(keys.map.seen), threading.Lock()

    def of_segments(columns: Sequence[Any]) -> Flags:
        known = np.array([None not in row for row in zip(*columns, strict=True)], dtype=bool)
        if new is not None and seen:
            some = [own[known] for own in columns]
            with lock:
                new.look(some[0] if len(some) == 1 else zip(*some, strict=True), seen)
        return known

    return of_segments


def _probabilities(
    fitted: Fitted, keys: SegmentKeys | None, options: ApplyOptions, watch: BlockWatch
) -> Callable[[Any, Sequence[Any]], Any]:
    """What complete rows of scores, and the columns beside them, become."""
    if isinstance(fitted.map, VectorMap):
        distributions = options.takes_distributions(fitted.map)

        def of_rows(scores: Any, beside: Sequence[Any]) -> Any:
            if distributions and not are_distributions(scores):
                raise StopError
            return fitted.predict_proba(scores, on_range="allow")

        return of_rows
    if isinstance(fitted, RowFitted):
        return lambda scores, beside: fitted.of_columns(scores, beside, watch.families)
    if keys is not None:
        return keys.map
    return lambda scores, beside: fitted.calibrate(scores, on_range="allow")
