"""``bins="auto"``: as many bins of equal mass as keep the frequencies rising."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.score_table import ScoreTable
from calibrant.errors import ParameterError
from calibrant.metrics.arguments import check_whole
from calibrant.metrics.weighted_cells import last_cells, starts_at
from calibrant.other_words import did_you_mean

Bins = int | Literal["auto"]

AUTO: Literal["auto"] = "auto"
#: the most bins that can be asked for: beyond, their borders alone would fill the memory
MOST_ASKED = 10_000_000
#: the sweep ends here at the latest
MOST = 1000
#: sums of weights, and products of such sums, may be off by this part from rounding
ROUNDING = 1e-12


def check_bin_count(bins: Any) -> Bins:
    """A whole number of at least 1 (and at most `MOST_ASKED`), or "auto"."""
    if not isinstance(bins, str):
        if check_whole("bins", bins, 1) > MOST_ASKED:
            raise ParameterError(f"bins must be at most {MOST_ASKED:,}, but {bins:,} came.")
        return int(bins)
    if bins != AUTO:
        hint = did_you_mean(bins, (AUTO,))
        raise ParameterError(
            f'bins must be a whole number of at least 1, or "auto", but {bins!r} came.{hint}'
        )
    return AUTO


def bins_note(count: int, errors: str = "ECE and MCE are") -> str:
    """What an evaluation says of ``bins="auto"``."""
    return f'bins="auto": {errors} over {count} bin{"" if count == 1 else "s"} of equal weight'


def sweep_starts(table: ScoreTable) -> Index:
    """The first cell of each bin of ``bins="auto"``.

    B = 2, 3, … bins of equal mass are tried, ties kept whole, until the frequency of positives
    falls from some bin to the next; the bins before that are taken, at most 1,000. (R. Roelofs et
    al., "Mitigating bias in calibration error estimation", 2022, arXiv:2012.08668.) A fall that
    rounding explains does not count. O(D + B² log D) for the B bins that are found. A common
    factor of all weights changes nothing.

    >>> table = ScoreTable.from_counts([0.1, 0.2, 0.6, 0.7], [2, 1, 2, 0], [0, 1, 1, 3])
    >>> sweep_starts(table).tolist()
    [0, 2, 3]
    """
    upto = np.cumsum(table.weight), np.cumsum(table.positive)
    cells = np.arange(len(table))
    if _rises(*upto, cells):  # then any bins of whole cells rise
        return equal_mass_starts(upto[0], MOST)
    found = cells[:1]
    for bins in range(2, MOST + 1):
        starts = equal_mass_starts(upto[0], bins)
        if not _rises(*upto, starts):
            break
        found = starts
    return found


def equal_mass_starts(mass: Array, bins: int) -> Index:
    """The first cell of each bin of equal mass; a border inside a tie moves to the end of the tie.

    ``mass`` is the weight up to the end of each cell. Bin k ends after k/bins of all weight.
    """
    wanted = mass[-1] * np.arange(1, bins) / bins
    inner = np.searchsorted(mass, wanted * (1.0 - ROUNDING)) + 1
    return starts_at(inner, len(mass))


def _rises(mass: Array, positive: Array, starts: Index) -> bool:
    """Whether the frequency of positives never falls from a bin to the next."""
    ends = last_cells(starts, len(mass))
    n, hits = (np.diff(column[ends], prepend=0.0) for column in (mass, positive))
    # a/n ≤ b/m without division: exact for counts
    fall = hits[:-1] * n[1:] - hits[1:] * n[:-1]
    noise = ROUNDING * mass[-1] * np.maximum(n[:-1], n[1:])
    return bool((fall <= noise).all())
