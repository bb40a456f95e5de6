"""Methods over datasets: who is better, and is it more than chance? Paired and rank tests."""

from calibrant.compare.critical import CriticalDifference, nemenyi
from calibrant.compare.gain import RelativeGain, relative_gain
from calibrant.compare.omnibus import FriedmanResult, friedman
from calibrant.compare.ranks import Ranks, average_ranks
from calibrant.compare.signed import (
    WilcoxonPair,
    WilcoxonPairs,
    WilcoxonResult,
    wilcoxon,
    wilcoxon_pairs,
)
from calibrant.compare.stepdown import HolmResult, holm
from calibrant.compare.summary import Comparison, compare

__all__ = [
    "Comparison",
    "CriticalDifference",
    "FriedmanResult",
    "HolmResult",
    "Ranks",
    "RelativeGain",
    "WilcoxonPair",
    "WilcoxonPairs",
    "WilcoxonResult",
    "average_ranks",
    "compare",
    "friedman",
    "holm",
    "nemenyi",
    "relative_gain",
    "wilcoxon",
    "wilcoxon_pairs",
]
