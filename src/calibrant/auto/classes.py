"""Several classes: candidates judged out of fold, and their mixture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.array_types import Array, Flags, Index
from calibrant.data.door import row_blocks
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import weight_in_rows
from calibrant.fitting.base import Calibrator
from calibrant.fitting.folds import FOLDS, split_present
from calibrant.fitting.held_out import CandidateTrial, Judged, Progress, Sample, pairs_in_order
from calibrant.fitting.model_scores import ModelRows, counting_rows
from calibrant.fitting.registry import BEFORE
from calibrant.methods.codes.calibrator import CodedCalibrator
from calibrant.methods.codes.other_views import TopLabelCalibrator
from calibrant.methods.scaling.affine import StructuredScaling, deal
from calibrant.methods.scaling.temperature import EnsembleTemperature, Temperature
from calibrant.methods.splines.bls import BLS
from calibrant.metrics.arguments import class_tables
from calibrant.rules.base import VectorMap
from calibrant.rules.softmax import Softmax, VectorMixture, seen_by_members
from calibrant.solvers.weights import mixture_weights

Pairs = list[tuple[Index, Index]]

#: the name of the average of the members
MIXTURE = "mixture"
#: distinct distributions are counted on at most so many rows
MOST_COUNTED = 200_000
#: and of many classes on rows of about so many scores
COUNTED_NUMBERS = 1 << 19
#: members see no probability below a floor: half the smallest that came, but within these limits
LEAST_FLOOR, LARGEST_FLOOR = 1e-7, 1e-2
#: folds hold out at most so many rows; candidates are fitted to all rows
MOST_JUDGED = 50_000
#: the pseudo-count of each member in the mixture
PSEUDO = 0.3
#: a member of less than this share is left out of the mixture
LEAST_SHARE = 1e-3


@dataclass(frozen=True)
class View:
    """How the members of the mixture see rows; see `VectorMixture`."""

    input: str
    floor: float
    factor: float

    def of(self, matrix: ScoreMatrix) -> ScoreMatrix:
        """The matrix that they are fitted to."""
        if self.input == "score":
            return matrix
        parts = (
            seen_by_members(matrix.scores[rows], self.input, self.floor, self.factor)
            for rows in row_blocks(*matrix.scores.shape)
        )
        return ScoreMatrix(np.concatenate(list(parts)), matrix.codes, matrix.weight)

    def map(self, weights: Any, maps: tuple[VectorMap, ...]) -> VectorMixture:
        """The average of maps of what is seen."""
        return VectorMixture(weights, maps, self.input, self.floor, self.factor)


def view_of(matrix: ScoreMatrix) -> View:
    """The view for a matrix: rows are softened to the best temperature, and then raised to a floor.

    Rows that the best temperature would sharpen are left as they are. The floor is half the
    smallest positive entry, within [1e-7, 1e-2]. Without it the 1e-300 of naive Bayes, or logits in
    the hundreds, would outweigh everything else in a logarithm. Softening comes first, since it
    keeps apart small entries that would otherwise all be raised to the floor. Rows of many classes
    are seen as they are: a copy of them would be large.
    """
    if matrix.n_classes > FEW_CLASSES:
        return View("score", 0.0, 1.0)
    kind = matrix.kind()
    factor = min(1.0, 1.0 / _fit(Temperature(), matrix).temperature_)
    smallest = 1.0
    for rows in row_blocks(*matrix.scores.shape):
        part = seen_by_members(matrix.scores[rows], kind, 0.0, factor)
        smallest = min(smallest, float(part.min(initial=1.0, where=part > 0)))
    largest = min(LARGEST_FLOOR, 0.5 / matrix.n_classes)
    return View(kind, float(np.clip(0.5 * smallest, LEAST_FLOOR, largest)), factor)


def row_splits(
    matrix: ScoreMatrix,
    classes: NDArray[Any],
    cv: Any,
    groups: Any,
    random_state: Any,
    present: Flags | None = None,
) -> tuple[Pairs, Index | None]:
    """Rows to learn from and to judge on, and which rows belong together.

    A number of folds is dealt from the rows in the order of their scores; if there are more than
    `MOST_JUDGED` rows, only so many of them are dealt. Of large matrices with many classes a single
    part is held out. ``present`` is as in `split_present`.
    """
    cv = FOLDS if cv is None else cv
    if isinstance(cv, (int, np.integer)) and groups is None:
        count = min(int(cv), len(matrix))
        parts = single_part(matrix, count)
        if parts:
            fold = deal(matrix, parts)
            return [(np.flatnonzero(fold), np.flatnonzero(fold == 0))], None
        step = -(-len(matrix) // MOST_JUDGED)
        fold = deal(matrix, count * step)
        return [
            (np.flatnonzero((fold != f) & (fold < count)), np.flatnonzero(fold == f))
            for f in range(count)
        ], None
    data = ModelRows(matrix.scores, matrix.codes, matrix.weight, classes, 1, "auto")
    splits = split_present(cv, data, present, groups, random_state)
    return splits.pairs, splits.cluster


def judge_classes(
    named: Mapping[str, Any],
    matrix: ScoreMatrix,
    pairs: Pairs,
    clusters: Index | None,
    *,
    weights: str = "importance",
    progress: bool,
) -> tuple[dict[str, CandidateTrial], Sample]:
    """Judge the scores as they came, the mixture, its members and every candidate."""
    held = HeldOutMatrix(matrix, pairs, weights)
    square = held.weight if weights == "counts" else held.weight**2
    if weights == "counts":
        named = {name: counting_rows(clone(one)) for name, one in named.items()}
    sample = Sample(held.weight, square, None if clusters is None else clusters[held.rows])
    view = view_of(matrix)
    members = members_for(matrix.n_classes, weights, rows=len(matrix))
    seen = view.of(matrix)
    bar = Progress((len(named) + len(members)) * (len(pairs) + 1), show=progress)
    inner = {name: _tried(one, seen, held, bar) for name, one in members.items()}
    others = {name: _tried(one, matrix, held, bar) for name, one in named.items()}
    bar.close()
    trials = {
        BEFORE: CandidateTrial(
            unchanged(matrix), 0.0, held.judged(held.before), held.kept(held.before)
        ),
        MIXTURE: _mix(inner, held, view),
    }
    for name, one in inner.items():
        trials[name] = replace(one, map=view.map([1.0], (one.map,)))
    return {**trials, **others}, sample


class HeldOutClasses(NamedTuple):
    """The distributions of rows that were held out before and after calibration, AUC of both, the
    number of folds, and the places of the rows."""

    before: ScoreMatrix
    after: ScoreMatrix
    aucs: tuple[float | None, float | None]
    folds: int
    rows: Index


class HeldOutMatrix:
    """The rows of a matrix that are held out, fold after fold.

    A row that is held out r times counts 1/r each time. ``weight`` is in the units of the weights
    that came, ``size`` in units of rows. ``before`` are the distributions without a calibrator.
    """

    def __init__(self, matrix: ScoreMatrix, pairs: Pairs, weights: str) -> None:
        self.pairs = pairs
        self._rest: tuple[ScoreMatrix, ScoreMatrix] | None = None
        self.rows = np.concatenate([test for _, test in pairs])
        self.fold = np.repeat(np.arange(len(pairs)), [len(test) for _, test in pairs])
        self.codes = matrix.codes[self.rows]
        share = 1.0 / np.bincount(self.rows)[self.rows]
        size = weight_in_rows(matrix.weight, weights)
        self.weight = share if matrix.weight is None else matrix.weight[self.rows] * share
        self.size = share if size is None else size[self.rows] * share
        self.before = as_they_came(matrix, self.rows)
        whole, apart = self._area(self.before, [slice(None)]), self._area(self.before, self._folds)
        self.beyond = 0.0 if whole is None or apart is None else whole - apart

    @property
    def _folds(self) -> list[Flags]:
        return [self.fold == f for f in range(len(self.pairs))]

    def rests(self, matrix: ScoreMatrix) -> Iterator[ScoreMatrix]:
        """The rows to learn from, fold after fold. A single part is taken once for all candidates,
        since it may be large."""
        if len(self.pairs) > 1:
            yield from (matrix.take(train) for train, _ in self.pairs)
            return
        if self._rest is None or self._rest[0] is not matrix:
            self._rest = matrix, matrix.take(self.pairs[0][0])
        yield self._rest[1]

    def kept(self, p: Array) -> NDArray[Any]:
        """Predictions as they are kept: of many classes in float32, to save memory."""
        return p if p.shape[1] <= FEW_CLASSES else p.astype(np.float32)

    def judged(self, p: Array) -> Judged:
        """The losses of predictions of these rows.

        AUC is the mean over the classes that came, each against the rest. It is that of the scores
        over all rows, plus what changed within folds: each fold has a map of its own.
        """
        auc = self._area(p, self._folds)
        if auc is not None:
            auc = min(max(auc + self.beyond, 0.0), 1.0)
        return judged_rows(p, self.codes, auc)

    def _area(self, p: Array, parts: list[Any]) -> float | None:
        """The mean over classes of the share of pairs within parts that are in order; None of many
        classes."""
        if p.shape[1] > FEW_CLASSES:
            return None
        pairs, ordered = np.zeros((2, p.shape[1]))
        for here in parts:
            part = ScoreMatrix(p[here], self.codes[here], self.weight[here])
            for column, table in enumerate(class_tables(part) if len(part) else ()):
                n, right = pairs_in_order(table)
                pairs[column] += n
                ordered[column] += right
        some = pairs > 0
        return float(np.mean(ordered[some] / pairs[some])) if some.any() else None


def judged_rows(p: Array, codes: Index, auc: float | None) -> Judged:
    """The losses of each row, given the places of the classes that came."""
    own = p[np.arange(len(p)), codes]
    with np.errstate(divide="ignore"):
        surprise = -np.log(own)
    square = np.square(p).sum(axis=1) - 2.0 * own + 1.0
    return Judged(surprise, square, auc, bool(p.min(initial=1.0) <= 0.0))


def _tried(
    calibrator: Any, matrix: ScoreMatrix, held: HeldOutMatrix, bar: Progress
) -> CandidateTrial:
    """A candidate fitted to the other rows of each fold, and to all rows."""
    rests = held.rests(matrix)
    maps, fitted, seconds = bar.fit_all(lambda rest: _fit(calibrator, rest), rests, matrix)
    tests = (matrix.scores[test] for _, test in held.pairs)
    p = np.concatenate([own(scores) for own, scores in zip(maps, tests, strict=True)])
    return CandidateTrial(fitted.map_, seconds, held.judged(p), held.kept(p), fitted)


def _fit(calibrator: Any, matrix: ScoreMatrix) -> Any:
    one = clone(calibrator)
    if isinstance(one, Calibrator) and not one.multiclass:
        one = CodedCalibrator(one.set_params(pos_label=None, classes=None))
    one.set_params(classes=list(range(matrix.n_classes)))
    return one.fit(matrix.scores, matrix.codes, matrix.weight)


def _mix(inner: Mapping[str, CandidateTrial], held: HeldOutMatrix, view: View) -> CandidateTrial:
    """The average of all members; each fold is judged with shares found on the other folds.

    A single part that is held out is halved for this.
    """
    rows = np.arange(len(held.codes))
    own = np.column_stack([one.oof[rows, held.codes] for one in inner.values()]).astype(np.float64)
    output = np.zeros(next(iter(inner.values())).oof.shape)
    fold = held.fold if len(held.pairs) > 1 else rows % 2
    for f in range(max(len(held.pairs), 2)):
        here = fold == f
        shares = mixture_weights(own[~here], held.size[~here], PSEUDO)
        for share, one in zip(shares, inner.values(), strict=True):
            output[here] += share * one.oof[here]
    shares = mixture_weights(own, held.size, PSEUDO)
    kept = shares > LEAST_SHARE
    maps = tuple(one.map for one, k in zip(inner.values(), kept, strict=True) if k)
    average = view.map(shares[kept] / shares[kept].sum(), maps)
    seconds = sum(one.seconds for one in inner.values())
    return CandidateTrial(average, seconds, held.judged(output), held.kept(output))


def rows_to_count(scores: NDArray[Any]) -> NDArray[Any]:
    """The rows that distributions are counted on: of many classes only some of them."""
    n, k = scores.shape
    return scores if k <= FEW_CLASSES else scores[:: -(-n // max(COUNTED_NUMBERS // k, 1))]


def count_distinct(p: Array) -> int:
    """How many different probabilities there are; distributions are counted on at most
    `MOST_COUNTED` rows."""
    if p.ndim == 1:
        return len(np.unique(p))
    p = p[:: -(-len(p) // MOST_COUNTED)]
    return len(np.unique(p @ np.sqrt(np.arange(2.0, p.shape[1] + 2.0))))


def as_they_came(matrix: ScoreMatrix, rows: Index) -> Array:
    """The distributions of some rows without a calibrator."""
    before, scores = unchanged(matrix), matrix.scores[rows]
    p = before(scores)
    if before.input == "probability":
        p[scores == 0] = 0.0  # the map gives 5e-324, but a wrong zero has an infinite loss
    return p


def unchanged(matrix: ScoreMatrix) -> Softmax:
    """Distributions as they are, logits through the softmax."""
    return Softmax.unchanged(matrix.n_classes, matrix.kind())


# --------------------------------------------------------------------------------------------------
# Which methods the mixture for several classes is made of: all that pay, and none that take too
#
# long.


#: up to so many classes, a calibrator is fitted to each of them
FEW_CLASSES = 30
#: the most rows times squared classes that a full matrix is fitted to, where classes are many
MATRIX_WORK = 50_000_000
#: many classes: folds are made of at most so many scores; of more, a single part is held out
FOLDED_NUMBERS = 1 << 20
#: many classes: that part holds about so many scores at most, but no fewer rows than the next
HELD_NUMBERS, LEAST_HELD = 1 << 20, 2000


def members_for(k: int, weights: str = "importance", *, rows: int) -> dict[str, Any]:
    """The members of the mixture for k classes; ``weights`` is as in `Calibrator`.

    Of many classes these are methods whose cost is a few passes over the rows. A full matrix is one
    of them while it is cheap.
    """
    if k <= FEW_CLASSES:
        return {
            "temperature": Temperature(),
            "structured, weak ridge": _structured(0.01, weights),
            "structured": _structured(1.0, weights),
            "one-vs-rest BLS": CodedCalibrator(BLS(weights=weights)),
        }
    members: dict[str, Any] = {} if _is_large(k, rows) else {"temperature": Temperature()}
    members["ensemble temperature"] = EnsembleTemperature()
    members["top-label BLS"] = TopLabelCalibrator(BLS(weights=weights))
    if _fits_vector(k, rows):
        members["structured vector"] = _structured(1.0, weights, "vector")
    if _fits_matrix(k, rows):
        members["structured"] = _structured(1.0, weights)
    return members


def left_out(k: int, rows: int) -> tuple[str, ...]:
    """What is no member because there are many classes, and why.

    >>> left_out(1000, 500)[1]
    'structured vector scaling, since there are fewer rows (500) than classes'
    >>> left_out(10, 500)
    ()
    """
    if k <= FEW_CLASSES:
        return ()
    reasons = [f"one-vs-rest BLS, which fits a curve to each of the {k:,} classes"]
    if _is_large(k, rows):
        reasons.append("temperature scaling alone, which ensemble temperature holds as a part")
    few = f"since there are fewer rows ({rows:,}) than classes"
    if not _fits_vector(k, rows):
        reasons.append(f"structured vector scaling, {few}")
    if not _fits_matrix(k, rows):
        many = f"which would take too long with {k * (k + 1):,} parameters"
        reasons.append(f"structured matrix scaling, {many if _fits_vector(k, rows) else few}")
    return tuple(reasons)


def _is_large(k: int, rows: int) -> bool:
    """Whether fits to folds would take long."""
    return rows * k > FOLDED_NUMBERS


def _fits_vector(k: int, rows: int) -> bool:
    return rows >= k


def _fits_matrix(k: int, rows: int) -> bool:
    return rows >= k and rows * k * k <= MATRIX_WORK


def _structured(strength: float, weights: str, structure: str = "matrix") -> StructuredScaling:
    return StructuredScaling(
        structure=structure,
        lambda_intercept=strength,
        lambda_diagonal=strength,
        lambda_off_diagonal=strength,
        gate=False,
        weights=weights,
    )


def single_part(matrix: ScoreMatrix, count: int) -> int:
    """How many parts a large matrix of many classes is dealt into, of which one is held out; 0
    where ``count`` folds take no long time."""
    n, k = len(matrix), matrix.n_classes
    if k <= FEW_CLASSES or not _is_large(k, n) or count < 2:
        return 0
    return max(count, n // max(HELD_NUMBERS // k, LEAST_HELD))
