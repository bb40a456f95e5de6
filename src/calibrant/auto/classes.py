"""Several classes: candidates judged out of fold, and their mixture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.array_types import Array
from calibrant.data.door import row_blocks
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.fitting.base import Calibrator
from calibrant.fitting.held_out import (
    FEW_CLASSES,
    FOLDED_NUMBERS,
    Fit,
    HeldOutMatrix,
    Trial,
    fit_bare,
    progress_bar,
    try_all,
)
from calibrant.fitting.model_scores import counting_rows
from calibrant.fitting.registry import BEFORE
from calibrant.methods.codes.calibrator import CodedCalibrator
from calibrant.methods.codes.other_views import TopLabelCalibrator
from calibrant.methods.scaling.affine import StructuredScaling
from calibrant.methods.scaling.temperature import EnsembleTemperature, Temperature
from calibrant.methods.splines.bls import BLS
from calibrant.rules.base import VectorMap
from calibrant.rules.softmax import VectorMixture, seen_by_members
from calibrant.solvers.weights import mixture_weights

#: the name of the average of the members
MIXTURE = "mixture"
#: distinct distributions are counted on at most so many rows
MOST_COUNTED = 200_000
#: and of many classes on rows of about so many scores
COUNTED_NUMBERS = 1 << 19
#: members see no probability below a floor: half the smallest that came, but within these limits
LEAST_FLOOR, LARGEST_FLOOR = 1e-7, 1e-2
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
    factor = min(1.0, 1.0 / fit_bare(Temperature())(matrix).temperature_)
    smallest = 1.0
    for rows in row_blocks(*matrix.scores.shape):
        part = seen_by_members(matrix.scores[rows], kind, 0.0, factor)
        smallest = min(smallest, float(part.min(initial=1.0, where=part > 0)))
    largest = min(LARGEST_FLOOR, 0.5 / matrix.n_classes)
    return View(kind, float(np.clip(0.5 * smallest, LEAST_FLOOR, largest)), factor)


def judge_classes(
    named: Mapping[str, Any], held: HeldOutMatrix, *, progress: bool
) -> dict[str, Trial]:
    """The scores as they came, the mixture, its members and every candidate on rows held out."""
    matrix, weights = held.matrix, held.weights
    if weights == "counts":
        named = {name: counting_rows(clone(one)) for name, one in named.items()}
    view = view_of(matrix)
    members = members_for(matrix.n_classes, weights, rows=len(matrix))
    seen = view.of(matrix)
    bar = progress_bar((len(named) + len(members)) * (held.folds + 1), show=progress)
    inner = try_all(fits_of(members), held.reading(seen), seen, bar=bar)
    others = try_all(fits_of(named), held, matrix, bar=bar)
    next(bar, None)  # ends the bar
    trials = {BEFORE: held.unchanged(), MIXTURE: _mix(inner, held, view)}
    for name, one in inner.items():
        trials[name] = replace(one, map=view.map([1.0], (one.map,)))
    return {**trials, **others}


def fits_of(named: Mapping[str, Any], classes: NDArray[Any] | None = None) -> dict[str, Fit]:
    """The fits of calibrators to matrices; those of one score are fitted one class at a time.

    ``classes`` is as in `fit_bare`.
    """

    def of_all_classes(one: Any) -> Any:
        if not isinstance(one, Calibrator) or one.multiclass:
            return one
        return CodedCalibrator(clone(one).set_params(pos_label=None, classes=None))

    return {name: fit_bare(of_all_classes(one), classes) for name, one in named.items()}


def _mix(inner: Mapping[str, Trial], held: HeldOutMatrix, view: View) -> Trial:
    """The average of all members; each fold is judged with shares found on the other folds.

    A single part that is held out is halved for this.
    """
    rows = np.arange(len(held.codes))
    own = np.column_stack([one.p[rows, held.codes] for one in inner.values()]).astype(np.float64)
    output = np.zeros(next(iter(inner.values())).p.shape)
    fold = held.fold if held.folds > 1 else rows % 2
    for f in range(max(held.folds, 2)):
        here = fold == f
        shares = mixture_weights(own[~here], held.size[~here], PSEUDO)
        for share, one in zip(shares, inner.values(), strict=True):
            output[here] += share * one.p[here]
    shares = mixture_weights(own, held.size, PSEUDO)
    kept = shares > LEAST_SHARE
    maps = tuple(one.map for one, k in zip(inner.values(), kept, strict=True) if k)
    average = view.map(shares[kept] / shares[kept].sum(), maps)
    seconds = sum(one.seconds for one in inner.values())
    return replace(held.trial(output), map=average, seconds=seconds)


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


# --------------------------------------------------------------------------------------------------
# Which methods the mixture for several classes is made of: all that pay, and none that take too
#
# long.


#: the most rows times squared classes that a full matrix is fitted to, where classes are many
MATRIX_WORK = 50_000_000


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
