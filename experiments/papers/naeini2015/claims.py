"""What the paper says, judged by the results. Every verdict is computed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.papers.beside import Beside, count, is_repeated, pick
from experiments.papers.cells import Claim
from experiments.papers.naeini2015 import adult, orders, pages, separate, simulated, sizes
from experiments.papers.naeini2015.beyond import future_work
from experiments.papers.naeini2015.methods import (
    ABB_BY_TEXT,
    ACP,
    BASE,
    MEASURES,
    METHODS,
    MORE,
)
from experiments.papers.published import published

Results = dict[str, pd.DataFrame]
#: table → measure → method → figure
Figures = dict[str, dict[str, dict[str, float]]]

SIMULATED, REAL = ("1a", "1b"), ("1c", "1d", "1e", "1f", "1g", "1h")
ADULT, SPECT = REAL[:3], REAL[3:]
CAP = ("1i", "1j", "1k")
#: a difference that counts as none where the paper says "as well"
AS_WELL = 0.01
#: ACP with 10 % intervals; and the column of the average over all binnings and λ
NARROW, ABB = "ACP 10 %", "ABB"
#: what a slope must reach to be called quadratic, and what RMSE may lose to nothing
QUADRATIC, LOSS = 1.8, 0.005


def cells_of(results: Results, name: str, reading: str = adult.ALL) -> pd.DataFrame:
    """The runs of a table that its figures are of: XOR near a diagonal, Adult in one reading."""
    frame = results[name]
    if name == "1a":
        return simulated.near_diagonal(frame)
    return frame[frame["reading"] == reading] if name in ADULT else frame


def selection(results: Results, tables: Sequence[str], reading: str = adult.ALL) -> str:
    """Which part of the cells of some tables is looked at, in words."""
    said = []
    near, every = (len(part) for part in (cells_of(results, "1a"), results["1a"]))
    if "1a" in tables and near < every:
        said.append(f"{near} of {every} XOR draws, near a diagonal")
    of_adult = [name for name in tables if name in ADULT and len(results[name])]
    if of_adult:
        part = sum(len(cells_of(results, name, reading)) for name in of_adult)
        every = sum(len(results[name]) for name in of_adult)
        words = f"{CHOSEN[reading]} only" if reading in CHOSEN else "all attributes"
        said.append(f"{part:,} of {every:,} of Adult, {words}")
    if any(name in SPECT for name in tables):
        said.append("SPECT: the paper's rows, the others for the spread")
    return "; ".join(said)


def grouped(
    results: Results, name: str, reading: str = adult.ALL, columns: Sequence[str] = pages.COLUMNS
) -> pages.Groups:
    return pages.groups(name, cells_of(results, name, reading), _judge(name), columns)


def _judge(name: str) -> pages.Judge:
    return pages.by_first if name in SPECT else pages.by_draws


def ours(results: Results, reading: str, abb: str = ABB) -> Figures:
    """Our figures (means over draws) for the tables that have been run.

    ``abb`` is the column that stands for ABB.
    """
    found: Figures = {}
    for name in (*SIMULATED, *REAL):
        if not len(results[name]):
            continue
        found[name] = {
            measure: {method: cell.mean for method, cell in cells.items()}
            for measure, cells in grouped(results, name, reading).items()
        }
        if abb != ABB:
            part = cells_of(results, name, reading)
            for measure, figures in found[name].items():
                figures[ABB] = float(_judge(name)(math.nan, pick(part, abb, measure)).mean)
    return found


def theirs() -> Figures:
    return {name: pages.printed(name) for name in (*SIMULATED, *REAL)}


def better(
    figures: Figures,
    tables: Iterable[str],
    pair: tuple[str, str],
    wanted: Sequence[str] = MEASURES,
    margin: float = 0.0,
    strict: bool = False,
) -> tuple[int, int]:
    """In how many comparisons the first method is at least as good as (strict: better than) the
    second, give or take a margin."""
    won = total = 0
    for name in tables:
        for measure in wanted:
            cells = figures.get(name, {}).get(measure, {})
            if not all(method in cells for method in pair):
                continue
            gain = cells[pair[0]] - cells[pair[1]]
            gain = gain if measure in MORE else -gain
            if math.isnan(gain):
                continue
            total += 1
            won += gain > 1e-9 if strict else gain >= -margin - 1e-9
    return won, total


def _in_words(pairs: dict[str, tuple[int, int]]) -> str:
    return "; ".join(f"{name} {won} of {total}" for name, (won, total) in pairs.items())


def compared(
    text: str,
    results: Results,
    tables: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    needed: float = 0.5,
    wanted: Sequence[str] = MEASURES,
    margin: float = 0.0,
    strict: bool = False,
    note: str = "",
) -> Claim:
    """A claim that some methods are at least as good as others, counted in the paper and here.

    It holds if each pair has at least the needed share of its comparisons, with all attributes of
    Adult; where the other reading of Adult has other counts, the note has them.
    """
    named = [(f"{a} over {b}".replace(BASE, "the model"), (a, b)) for a, b in pairs]
    sources = (theirs(), ours(results, adult.ALL), ours(results, adult.WORDS))
    printed, mine, words = (
        {name: better(figures, tables, pair, wanted, margin, strict) for name, pair in named}
        for figures in sources
    )

    def met(counts: dict[str, tuple[int, int]]) -> bool:
        return all(won >= needed * total for won, total in counts.values())

    known = all(total for _, total in mine.values())
    holds = met(mine) if known else None
    also = " either" if holds is False else ""
    notes = [] if met(printed) else [f"the published figures do not meet it{also}"]
    notes += [note] if note else []
    if words != mine:
        notes.append(f"Adult with nominal attributes only: {_in_words(words)}")
    claim = Claim(text, _in_words(printed), _in_words(mine), holds, "; ".join(notes))
    return claim.resting_on(*tables, selection=selection(results, tables))


def by_text(
    results: Results,
    tables: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    needed: float = 0.5,
    wanted: Sequence[str] = MEASURES,
    margin: float = 0.0,
    strict: bool = False,
) -> Claim:
    """A claim on ABB once more, with ABB as the text has it: it holds if it does in each form."""
    pairs = [pair for pair in pairs if ABB in pair]
    words, verdicts = [], []
    for abb in ABB_BY_TEXT:
        figures = ours(results, adult.ALL, abb)
        counts = {
            f"over {b}".replace(BASE, "the model"): better(
                figures, tables, (a, b), wanted, margin, strict
            )
            for a, b in pairs
        }
        words.append(f"{abb} {_in_words(counts)}")
        verdicts.append(all(won >= needed * total > 0 for won, total in counts.values()))
    printed = {
        f"ABB over {b}".replace(BASE, "the model"): better(
            theirs(), tables, (a, b), wanted, margin, strict
        )
        for a, b in pairs
    }
    said = "; ".join(words).replace("ABB text, ", "")
    known = any(len(results[name]) for name in tables)
    holds = all(verdicts) if known else None
    claim = Claim("… ABB as the text has it", _in_words(printed), said, holds)
    return claim.resting_on(*tables, selection=selection(results, tables))


def repeated(
    text: str,
    results: Results,
    tables: Sequence[str],
    columns: Sequence[str] = pages.COLUMNS,
    reading: str = adult.ALL,
    note: str = "",
) -> Claim:
    """Whether the published figures of some tables lie within the spread of ours."""
    found = [
        cell
        for name in tables
        if len(results[name])
        for cell in pages.flat(grouped(results, name, reading, columns))
    ]
    said = f"{count(found)} within the spread"
    claim = Claim(text, f"{len(found)} figures", said, is_repeated(found), note)
    return claim.resting_on(*tables, selection=selection(results, tables, reading))


def tables_repeated(results: Results) -> list[Claim]:
    """Can the tables be repeated?"""
    six = list(METHODS)
    found = [
        repeated("Table 1 (a, b), simulated: all methods but ACP", results, SIMULATED, six),
        acp_on_simulated(results),
    ]
    chosen = f"one of {len(adult.ENCODINGS)} encodings, found by its fit"
    for name, words in TITLES.items():
        title = f"Table 1 ({name[-1]}): {words}"
        if name in SPECT:
            note = close(results, name) if len(results[name]) else ""
            found.append(repeated(title, results, (name,), note=note))
            continue
        note = flat_svm(results) if name == "1d" and len(results[name]) else ""
        found.append(repeated(f"{title}, all attributes", results, (name,), note=note))
        for reading, models in adult.READINGS.items():
            if reading != adult.ALL and pages.model_of(name) in models:
                how = f"… {CHOSEN[reading]} only"
                found.append(repeated(how, results, (name,), reading=reading, note=chosen))
    lost = sum(len(published(pages.NAME, name)) for name in CAP)
    out = "the data are private: out of reach"
    cap = Claim("Table 1 (i, j, k): CAP", f"{lost} figures", "–", None, out)
    return [*found, abb_column(results), cap]


TITLES = {
    "1c": "Adult, naive Bayes",
    "1d": "Adult, linear SVM",
    "1e": "Adult, logistic regression, ACP too",
    "1f": "SPECT, naive Bayes",
    "1g": "SPECT, quadratic SVM",
    "1h": "SPECT, logistic regression, ACP too",
}


#: readings of Adult that were found by their fit
CHOSEN = {adult.WORDS: "nominal attributes", adult.TWO: "age and hours"}


def close(results: Results, name: str) -> str:
    """How many figures of a table of SPECT are the same but for a little."""
    cells = pages.flat(grouped(results, name))
    same = sum(abs(cell.published - cell.mean) <= pages.CLOSE for cell in cells)
    return f"{same} of {len(cells)} within {pages.CLOSE:g} of ours, on the same rows"


def flat_svm(results: Results) -> str:
    """The rows of the SVM and of its Platt, as constants: the figures that were not put in."""
    part = cells_of(results, "1d", adult.WORDS)
    found = pages.against("1d", part, pages.CONSTANT, pages.by_draws)
    given = {("AUC", adult.FLAT), ("AUC", adult.STUCK), ("MCE", adult.FLAT)}
    cells = [
        cell
        for measure, ours_of in found.items()
        for method, cell in ours_of.items()
        if (measure, method) not in given
    ]
    return (
        "predictions that are all but constant, in the order of the scores, have the figures of "
        f"the SVM itself and of its Platt: {count(cells)} that are not put in (their order and one "
        "level are)"
    )


def abb_column(results: Results) -> Claim:
    """The column of ABB in all parts of Table 1, as the text has it."""

    def cells(abb: str) -> list[Beside]:
        return [
            cell
            for name in (*SIMULATED, *REAL)
            for cell in pages.flat(
                pages.against(name, cells_of(results, name), {abb: ABB}, _judge(name))
            )
            if cell.runs
        ]

    found = {abb: cells(abb) for abb in ABB_BY_TEXT}
    said = "; ".join(f"{abb} {count(of)}" for abb, of in found.items())
    return Claim(
        "… of all these tables, the column of ABB as the text has it",
        f"{len(found[next(iter(found))])} figures",
        f"within the spread: {said.replace('ABB text, ', '')}",
        all(is_repeated(of) for of in found.values()) if any(found.values()) else None,
        f"ABB averaged over λ {count(cells(ABB))}; Adult with all attributes",
    ).resting_on(*SIMULATED, *REAL, selection=selection(results, (*SIMULATED, *REAL)))


def acp_on_simulated(results: Results) -> Claim:
    """ACP with the paper's intervals, and with narrow ones."""
    words, holds = {}, None
    for variant in ACP:
        found = [
            cell
            for name in SIMULATED
            if len(results[name])
            for cell in pages.flat(
                pages.against(name, cells_of(results, name), {variant: "ACP"}, pages.by_draws)
            )
        ]
        words[variant] = count(found)
        if variant == "ACP" and found:
            holds = all(cell.within is not False for cell in found)
    return Claim(
        "Table 1 (a, b), simulated: ACP with 95 % intervals",
        f"{len(SIMULATED) * len(MEASURES)} figures",
        f"{words['ACP']} within the spread",
        holds,
        f"with 10 % intervals {words['ACP 10 %']}, with 95 % on the logit scale "
        f"{words['ACP logit']}",
    ).resting_on(*SIMULATED, selection=selection(results, SIMULATED))


def best_methods(results: Results) -> Claim:
    """ "There is no superior method …": how often each is the best in a line of the tables."""

    def firsts(figures: Figures) -> dict[str, int]:
        found: dict[str, int] = {}
        for measures in figures.values():
            for measure, cells in measures.items():
                sign = 1.0 if measure in MORE else -1.0
                top = max(sign * value for value in cells.values())
                for method, value in cells.items():
                    found[method] = found.get(method, 0) + (sign * value >= top - 1e-9)
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def words(found: dict[str, int]) -> str:
        return ", ".join(f"{m} {n}".replace(BASE, "the model") for m, n in found.items())

    mine, figures = firsts(ours(results, adult.ALL)), ours(results, adult.ALL)
    lines = sum(len(measures) for measures in figures.values())
    holds = max(mine.values()) < lines if mine else None
    return Claim(
        "No method outperforms all others in all data sets on all measures",
        f"best in a line: {words(firsts(theirs()))}",
        f"best in a line: {words(mine)}",
        holds,
        f"{lines} lines (ties count for each)",
    ).resting_on(*figures, selection=selection(results, list(figures)))


def not_separate(results: Results) -> Claim:
    """Footnote 2."""
    text = "Rows apart from the training rows are not necessary for calibration (footnote 2)"
    frame = results["separate"]
    if not len(frame):
        return Claim(text, "–", "not run yet", None).resting_on("separate")
    found = separate.differences(frame)
    worst = found.loc[found["mean"].idxmax()]
    words = (
        f"RMSE grows by {found['mean'].mean():.4f} on average, at most by {worst['mean']:.4f} "
        f"({worst['method']}, {worst['problem']})"
    )
    note = f"holds if no method loses more than {LOSS:g} on any of five problems"
    claim = Claim(text, "stated, no figures", words, bool(worst["mean"] <= LOSS), note)
    return claim.resting_on("separate")


def quadratic(results: Results) -> Claim:
    """Table 2's orders of SBB and ABB."""
    text = "Learning takes O(N²) for SBB and O(RN²) for ABB: their main disadvantage"
    orders_of = ", ".join(f"{name} {pages.growth(name, 'fit')[0]}" for name in ("SBB", "ABB"))
    frame = results["2"]
    names = ("SBB", "ABB", orders.TEXT)
    slopes = {name: orders.slope(frame, name, "rows") for name in names} if len(frame) else {}
    if not slopes or any(math.isnan(value) for value in slopes.values()):
        return Claim(text, orders_of, "not run yet", None).resting_on("2")
    words = ", ".join(f"{name} N^{value:.2f}" for name, value in slopes.items())
    holds = all(slopes[name] >= QUADRATIC for name in ("SBB", "ABB"))
    return Claim(
        text,
        orders_of,
        f"CPU time of a fit grows as {words}",
        holds,
        "the same optimum and the same average, found with less work",
    ).resting_on("2")


def narrow_acp(results: Results) -> str:
    """SBB and ABB against ACP with 10 % intervals, which come nearer to the published figures."""
    figures = {
        name: {
            measure: {m: float(np.mean(pick(part, m, measure))) for m in ("SBB", "ABB", NARROW)}
            for measure in MEASURES
        }
        for name in (*SIMULATED, *REAL)
        if len(part := cells_of(results, name)) and len(pick(part, NARROW, MEASURES[0]))
    }
    counts = {m: better(figures, figures, (m, NARROW), margin=AS_WELL) for m in ("SBB", "ABB")}
    return f"against {NARROW}: {_in_words(counts)}"


def both_ways(
    text: str,
    results: Results,
    tables: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    note: str = "",
    **options: Any,
) -> list[Claim]:
    """A claim on ABB as the library has it, and once more with ABB as the text has it."""
    return [
        compared(text, results, tables, pairs, note=note, **options),
        by_text(results, tables, pairs, **options),
    ]


def claims(results: Results) -> list[Claim]:
    """All of them, in the order of the paper."""
    both = [("SBB", "IsoReg"), ("SBB", "Platt"), ("ABB", "IsoReg"), ("ABB", "Platt")]
    to_base = [("SBB", BASE), ("ABB", BASE)]
    every = (*SIMULATED, *REAL)
    return [
        *tables_repeated(results),
        best_methods(results),
        *both_ways(
            "SBB and ABB are superior to Platt and isotonic regression in all the simulated sets",
            results,
            SIMULATED,
            both,
            needed=1.0,
            strict=True,
        ),
        compared(
            "… in AUC, accuracy and RMSE alone",
            results,
            SIMULATED,
            both,
            needed=1.0,
            strict=True,
            wanted=MEASURES[:3],
        ),
        *both_ways(
            "SBB and ABB perform as well or better than isotonic regression and Platt on real data",
            results,
            REAL,
            both,
            margin=AS_WELL,
        ),
        *both_ways(
            "SBB and ABB generally retain or improve the model's accuracy and AUC",
            results,
            every,
            to_base,
            wanted=MEASURES[:2],
            margin=AS_WELL,
        ),
        compared("… AUC on real data", results, REAL, to_base, wanted=("AUC",), margin=AS_WELL),
        *both_ways(
            "SBB and ABB often improve the model's RMSE, ECE and MCE",
            results,
            every,
            to_base,
            wanted=MEASURES[2:],
            strict=True,
        ),
        *both_ways(
            "SBB and ABB perform as well or better than ACP (95 % intervals)",
            results,
            every,
            [("SBB", "ACP"), ("ABB", "ACP")],
            margin=AS_WELL,
            note=narrow_acp(results),
        ),
        compared(
            "ACP performed well with logistic regression: as well or better than isotonic "
            "regression and Platt",
            results,
            every,
            [("ACP", "IsoReg"), ("ACP", "Platt")],
            margin=AS_WELL,
        ),
        *both_ways("ABB overall outperforms SBB", results, every, [("ABB", "SBB")], strict=True),
        not_separate(results),
        quadratic(results),
        sizes.claim(results["sizes"]),
        *future_work(results),
    ]
