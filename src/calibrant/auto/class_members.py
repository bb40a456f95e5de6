"""Which methods the mixture for several classes is made of: all that pay, and none that take too
long."""

from __future__ import annotations

from typing import Any

from calibrant.calibrators.bls import BLS
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.multiclass.coded_calibrator import CodedCalibrator
from calibrant.multiclass.top_label import TopLabelCalibrator
from calibrant.scaling.ensemble_temperature import EnsembleTemperature
from calibrant.scaling.structured import StructuredScaling
from calibrant.scaling.temperature import Temperature

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
