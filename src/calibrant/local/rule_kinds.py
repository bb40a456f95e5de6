"""Every kind of rule by name, for reading files."""

from __future__ import annotations

from calibrant.local.class_scores import ClassScores
from calibrant.local.interval_bins import IntervalBins
from calibrant.local.neighbours import Neighbours
from calibrant.local.rule import Rule
from calibrant.local.tree_rule import TreeRounds

KINDS: dict[str, type[Rule]] = {
    kind.kind: kind for kind in (ClassScores, IntervalBins, Neighbours, TreeRounds)
}
