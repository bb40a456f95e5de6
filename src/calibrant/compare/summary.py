"""The whole comparison in one result: mean ranks, F_F, and which methods differ."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any

from calibrant.compare.scores import Ranks, Tabular, percent, ranks_of, shown_number
from calibrant.compare.tests import (
    CriticalDifference,
    FriedmanResult,
    HolmResult,
    friedman,
    holm,
    nemenyi,
)
from calibrant.metrics.tables import check_number
from calibrant.result_tables import sure_p

#: with fewer datasets p-values are rough, and only large differences can show
FEW = 10


@dataclass(frozen=True, repr=False)
class Comparison(Tabular):
    """The result of `compare`; prints as a table, the best method first.

    Attributes
    ----------
    ranks : Ranks
        Mean ranks, and on how many datasets each method is the best.
    friedman : FriedmanResult
        Whether the methods differ at all.
    holm : HolmResult or None
        Each method against the control, if there is one.
    critical : CriticalDifference
        All pairs; `critical_difference_diagram` draws it.
    larger_is_better : bool
    level : float
    """

    ranks: Ranks
    friedman: FriedmanResult
    holm: HolmResult | None
    critical: CriticalDifference
    larger_is_better: bool
    level: float

    @property
    def differs(self) -> bool:
        """Whether F_F rejects that all methods are alike. Otherwise no two are called different."""
        return self.friedman.f_p_value <= self.level

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Those of Nemenyi's test, or all methods in one where F_F does not reject."""
        if self.differs:
            return self.critical.groups
        return (tuple(self.ranks.names[column] for column in self.ranks.order),)

    @property
    def verdicts(self) -> dict[str, str]:
        """What is said of each method, the best first.

        Against a control "better", "worse", "not shown" or "control"; else letters: methods that
        share one do not differ beyond chance.
        """
        names = [self.ranks.names[column] for column in self.ranks.order]
        if self.holm is None:
            return dict(zip(names, self._letters(names), strict=True))
        words = {self.holm.control: "control"}
        if self.differs:
            words |= {name: self.holm.verdict(name) for name in self.holm.names}
        return {name: words.get(name, "not shown") for name in names}

    def _letters(self, names: list[str]) -> list[str]:
        """Letters for the methods: those that share a letter do not differ."""
        joined = {name for group in self.groups for name in group}
        alone = [(name,) for name in names if name not in joined]
        groups = sorted([*self.groups, *alone], key=lambda group: names.index(group[0]))
        signs = [*string.ascii_letters, *(f"({n})" for n in range(53, len(groups) + 1))]
        return ["".join(s for s, g in zip(signs, groups, strict=False) if n in g) for n in names]

    # --- printing -------------------------------------------------------------------------------

    def _head(self) -> tuple[str, ...]:
        wins = ("best on",) if self.ranks.best is not None else ()
        if self.holm is None:
            return ("method", "mean rank", *wins, "group")
        return ("method", "mean rank", *wins, "z", "p", "Holm's p", f"than {self.holm.control}")

    def _rows(self) -> list[tuple[Any, ...]]:
        verdicts, rows = self.verdicts, []
        for column in self.ranks.order:
            name = self.ranks.names[column]
            wins = () if self.ranks.best is None else (self.ranks.best[column],)
            tests: tuple[float | None, ...] = ()
            if self.holm is not None:
                tests = (None, None, None)
                if name != self.holm.control:
                    i = self.holm.names.index(name)
                    tests = (self.holm.z[i], self.holm.p_values[i], self.holm.adjusted[i])
            rows.append((name, self.ranks.mean[column], *wins, *tests, verdicts[name]))
        return rows

    def _below(self) -> list[str]:
        test, better = self.friedman, "larger" if self.larger_is_better else "smaller"
        lines = [
            f"{self.ranks.datasets} datasets, {better} is better; "
            f"χ² {shown_number(test.statistic, 2)} ({sure_p(test.p_value)}), "
            f"F_F {shown_number(test.f_statistic, 2)} "
            f"(df {test.f_df[0]}, {test.f_df[1]}; {sure_p(test.f_p_value)})"
        ]
        level = percent(self.level)
        if self.holm is not None:
            lines.append(f"Holm at {level} against {self.holm.control}")
        else:
            lines.append(
                f"Nemenyi at {level}: mean ranks {self.critical.critical_difference:.3f} apart "
                "differ; methods that share a letter do not"
            )
        return [*lines, *(f"note: {note}" for note in self.notes)]

    @property
    def notes(self) -> tuple[str, ...]:
        """What to bear in mind."""
        notes = []
        if not self.differs:
            notes.append(
                f"F_F does not reject at {percent(self.level)} that all methods are alike, so no "
                "two are called different"
            )
        if self.ranks.datasets < FEW:
            notes.append(
                f"{self.ranks.datasets} datasets are few: p-values are rough, and only large "
                "differences can show"
            )
        return tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON (which has no infinity: "inf")."""
        return super().to_dict() | {"verdicts": self.verdicts, "notes": list(self.notes)}


def compare(
    scores: Any,
    *,
    larger_is_better: bool,
    names: Any = None,
    control: Any = None,
    level: float = 0.05,
) -> Comparison:
    """Methods over datasets, as Demšar recommends: mean ranks, F_F, then who differs from whom.

    Parameters
    ----------
    scores : array-like of shape (datasets, methods), frame, mapping of name to column, or Ranks
        One figure per dataset and method, already averaged over repetitions.
    larger_is_better : bool
        True for accuracy and AUC, False for errors and losses. There is no default.
    names : sequence of str, optional
        The methods, where the scores are an array; default: "method 1", "method 2", …
    control : str or int, optional
        Hold all methods against this one (by name, or column from 0) with Holm's step-down.
        Default: all pairs, by Nemenyi's test.
    level : float, default=0.05

    Returns
    -------
    Comparison
        Prints as a table; ``to_frame``, ``to_dict``; ``verdicts``.

    Notes
    -----
    `average_ranks`, `friedman` (F_F without the correction for ties), and if its p-value is at most
    the level, `holm` or `nemenyi`; if it is not, no two methods are called different, whatever the
    later tests say. Name the control before looking at the scores: the best of ten methods, held
    against the others as if it had been meant from the start, wins too often. O(Nk²). Ties share
    ranks. No weights.

    References
    ----------
    .. [1] J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of
       Machine Learning Research 7, 2006.

    Examples
    --------
    >>> loss = {"raw": [0.50, 0.61, 0.42, 0.38, 0.55, 0.47, 0.70, 0.33, 0.58, 0.49],
    ...         "Platt": [0.45, 0.60, 0.40, 0.39, 0.50, 0.44, 0.66, 0.31, 0.53, 0.46],
    ...         "BLS": [0.44, 0.58, 0.39, 0.36, 0.51, 0.43, 0.65, 0.30, 0.52, 0.45]}
    >>> result = compare(loss, larger_is_better=False, control="BLS")
    >>> print(result)
    method  mean rank  best on     z        p  Holm's p  than BLS
    ──────  ─────────  ───────  ────  ───────  ────────  ────────
    BLS         1.100        9     –        –         –   control
    Platt       2.000        1  2.01    0.044     0.044     worse
    raw         2.900        0  4.02  5.7e-05   0.00011     worse
    10 datasets, smaller is better; χ² 16.20 (p = 0.0003), F_F 38.37 (df 2, 18; p = 3.2e-07)
    Holm at 5 % against BLS
    >>> result.verdicts["raw"]
    'worse'
    """
    level = check_number("level", level, 0.0, 1.0)
    ranks = ranks_of(scores, larger_is_better, names)
    held = None
    if control is not None:
        held = holm(ranks, control=control, larger_is_better=larger_is_better, level=level)
    return Comparison(
        ranks,
        friedman(ranks, larger_is_better=larger_is_better),
        held,
        nemenyi(ranks, larger_is_better=larger_is_better, level=level),
        bool(larger_is_better),
        level,
    )
