"""Methods over datasets: who is better, and is it more than chance? Paired and rank tests."""

from calibrant.compare.scores import Ranks, average_ranks
from calibrant.compare.summary import Comparison, compare
from calibrant.compare.tests import (
    CriticalDifference,
    FriedmanResult,
    HolmResult,
    RelativeGain,
    WilcoxonPair,
    WilcoxonPairs,
    WilcoxonResult,
    friedman,
    holm,
    nemenyi,
    relative_gain,
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
