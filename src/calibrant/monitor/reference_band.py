"""What old rows say of P(y | score), for a monitor that has no calibrator to go by."""

from __future__ import annotations

from calibrant.data.score_table import ScoreTable
from calibrant.data.weighing import rows_count_once
from calibrant.errors import InputError
from calibrant.metrics.rising_band import RisingBand

__all__ = ["reference_band"]


def reference_band(table: ScoreTable, level: float) -> RisingBand:
    """The band that holds the whole rising curve with probability ``1 − level`` at least."""
    if not rows_count_once(table):
        raise InputError(
            "the rows of the reference must have no weights, since its limits are for rows "
            "that count once. Leave the weights out, or monitor against a calibrator."
        )
    return RisingBand.of(table, level)
