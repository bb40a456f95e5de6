"""Methods over datasets: who is better, and is it more than chance? Paired and rank tests."""

from calibrant.compare.friedman_test import FriedmanResult, friedman
from calibrant.compare.gain import RelativeGain, relative_gain
from calibrant.compare.holm_test import HolmResult, holm
from calibrant.compare.nemenyi_test import CriticalDifference, nemenyi
from calibrant.compare.ranks import Ranks, average_ranks
from calibrant.compare.summary import Comparison, compare
from calibrant.compare.wilcoxon_test import (
    WilcoxonPair,
    WilcoxonPairs,
    WilcoxonResult,
    wilcoxon,
    wilcoxon_pairs,
)

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
