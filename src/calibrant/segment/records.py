"""The outcome for each segment, and for each shrinkage that was tried."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.data.segment_keys import SegmentKey


@dataclass(frozen=True)
class Segment:
    """One segment: how much was known of it, and how far it went its own way.

    Parameters
    ----------
    key : str or int
        With several columns a tuple, such as ("fr",) or ("fr", "card").
    weight, positive : float
        Σw of its rows and of its positives.
    rows, events : float
        The effective number (Σw)²/Σw² of its rows, and of those of its rarer class.
    share : float
        λ, the share of its own map; 0 where it has the map of all rows (with several columns, that
        of the coarser segment).
    reason : str
        Why it has no map of its own; empty where it has one.
    """

    key: SegmentKey
    weight: float
    positive: float
    rows: float
    events: float
    share: float
    reason: str = ""


@dataclass(frozen=True)
class ShrinkageTrial:
    """A candidate for κ: its log loss on rows left out, and how sure its lag behind the best is.

    Parameters
    ----------
    shrinkage : float
        κ, from 0 (each segment by itself) to infinity (the map of all rows for everyone).
    log_loss : float
    behind, error : float
        By how much more than the best, and the standard error of that difference.
    """

    shrinkage: float
    log_loss: float
    behind: float
    error: float
