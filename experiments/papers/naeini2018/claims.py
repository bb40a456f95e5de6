"""What the paper claims, judged by the results."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from experiments.papers.beside import MOST, beside, counted, is_repeated
from experiments.papers.cells import Claim
from experiments.papers.naeini2018 import elite, gains, liver, ranks
from experiments.papers.naeini2018.beyond import future_work, left_out
from experiments.papers.naeini2018.grids import LARGER, MAIN, READINGS, Reading
from experiments.papers.naeini2018.methods import PAPERS_MEASURES
from experiments.papers.naeini2018.models import MODELS
from experiments.papers.naeini2018.real import complete
from experiments.papers.naeini2018.simulated import LINEAR, PROBLEMS, SHARP, SOFT, groups
from experiments.papers.published import figure

__all__ = ["claims"]

FEWEST = 10


def claims(found: dict[str, pd.DataFrame]) -> list[Claim]:
    """All of them, as far as there are results."""
    told: list[Claim] = []
    if len(found["1"]):
        told += [claim.resting_on("1") for claim in simulated(found["1"])]
    if len(found["figure2"]):
        told += [claim.resting_on("figure2") for claim in figure_2(found["figure2"])]
    real = complete(found["3-6"]) if len(found["3-6"]) else found["3-6"]
    if real["dataset"].nunique() >= FEWEST:
        own = int(real["model"].isin(MODELS).sum())
        part = f"{own:,} of them: LR, SVM and NB, {MAIN.words}"
        ours = [
            *gain_claims(real),
            *rank_claims(real),
            *elite_claims(real),
        ]
        told += [claim.resting_on("3-6", selection=part) for claim in ours]
        told.append(elite_leads(real, found["platt"]).resting_on("3-6", "platt", selection=part))
    return [*told, *left_out(found), *future_work(found)]


# --- simulated data -------------------------------------------------------------------------------


def _pairs(values: Iterable[tuple[str, float, float]], digits: int) -> str:
    return "; ".join(f"{name} {a:.{digits}f} / {b:.{digits}f}" for name, a, b in values)


def simulated(frame: pd.DataFrame) -> list[Claim]:
    """Table 1: ENIR against IsoRegC; and whether the figures themselves come back."""
    told = []
    texts = {
        LINEAR: "With a linear kernel, ENIR outperforms IsoRegC on the simulated data",
        SOFT: "With a quadratic kernel, ENIR performs as well as IsoRegC or better",
    }
    for problem, text in texts.items():
        cells = groups(frame, problem)
        there = [
            (m, row["ENIR paper"].published, row["Isotonic"].published) for m, row in cells.items()
        ]
        ours = [(m, row["ENIR paper"].mean, row["Isotonic"].mean) for m, row in cells.items()]
        # where the paper says "as well", half a unit of its last digit is no difference
        slack = 0.0 if problem == LINEAR else 0.005
        good = all((a >= b - slack) if m in LARGER else (a <= b + slack) for m, a, b in ours)
        shown = (_pairs(there, 2), _pairs(ours, 3))
        told.append(Claim(f"{text} (ENIR / IsoRegC)", *shown, good, _ties(frame, problem)))
    for problem in PROBLEMS:
        every = [cell for row in groups(frame, problem).values() for cell in row.values()]
        note = "; the paper does not give C" if problem in (SHARP, SOFT) else ""
        text = f"The figures of Table 1 ({PROBLEMS[problem].part}), {problem}"
        text = f"… {problem}" if problem == SOFT else text
        rule = f"holds: at least {MOST:.0%} within{note}"
        shown = (f"{len(every)} figures, means of ten runs", counted(every), is_repeated(every))
        told.append(Claim(text, *shown, rule))
    return told


def _ties(frame: pd.DataFrame, problem: str) -> str:
    part = frame[frame["problem"] == problem]
    words = (
        f"{name} {part[f'{name} ECE'].mean():.3f}, ties together "
        f"{part[f'{name} ECE, ties together'].mean():.3f}"
        for name in ("ENIR paper", "Isotonic")
    )
    return "ECE with ties ordered by label: " + "; ".join(words)


# --- liver-disorders ------------------------------------------------------------------------------


def figure_2(frame: pd.DataFrame) -> list[Claim]:
    """The order of the first two bins, and the AUC."""
    shares = {
        (kind, end): [
            float(liver.violated(frame[frame["model"] == model], kind, end).mean())
            for model in MODELS
        ]
        for kind in liver.KINDS
        for end in liver.ENDS
    }
    ours = "; ".join(
        f"{kind}, {end}: {', '.join(f'{share:.0%}' for share in found)}"
        for (kind, end), found in shares.items()
    )
    violated = any(all(share > 0.5 for share in found) for found in shares.values())
    area = {
        kind: [beside(0.0, frame[frame["model"] == m][f"{kind} AUC"], 2).mean for m in MODELS]
        for kind in liver.KINDS
    }
    there = figure("naeini2018", "figure2", measure="AUC")
    near = {kind: [abs(value - there) < 0.015 for value in found] for kind, found in area.items()}
    text = "; ".join(f"{k}: {', '.join(f'{v:.2f}' for v in found)}" for k, found in area.items())
    return [
        Claim(
            "On liver-disorders the first two of five bins are out of order with LR, SVM and NB",
            "in all three",
            f"runs in which they are (LR, SVM, NB): {ours}",
            violated,
            "holds: in most runs with all three, in any of the four readings",
        ),
        Claim(
            "The final AUC on liver-disorders",
            f"{there:.2f}",
            f"LR, SVM, NB: {text}",
            any(any(found) for found in near.values()),
            "the paper does not say of which classifier; holds: one of the six within 0.015",
        ),
    ]


# --- Table 3 --------------------------------------------------------------------------------------


def gain_claims(frame: pd.DataFrame) -> list[Claim]:
    """What is said of the intervals: of AUC, of accuracy, and of the measures of calibration."""
    said = {
        "AUC": ("ENIR does not change AUC beyond chance", ("LR", "SVM", "NB"), "no difference"),
        "ACC": ("ENIR improves the accuracy of LR and NB", ("LR", "NB"), "better"),
        "RMSE": ("ENIR improves RMSE", ("LR", "SVM", "NB"), "better"),
        "ECE": ("ENIR improves ECE", ("LR", "SVM", "NB"), "better"),
        "MCE": ("ENIR improves MCE", ("LR", "SVM", "NB"), "better"),
    }
    told = []
    for measure, (text, models, verdict) in said.items():
        there = "; ".join(f"{m} {gains.printed(m, measure)}" for m in models)
        found = {m: gains.gain(frame, m, measure) for m in models}
        ours = "; ".join(f"{m} {interval}" for m, interval in found.items())
        holds = all(interval.verdict(measure) == verdict for interval in found.values())
        told.append(
            Claim(f"{text} (Table 3)", there, ours, holds, _elsewhere(frame, said, measure))
        )
    return told


def _elsewhere(
    frame: pd.DataFrame, said: dict[str, tuple[str, tuple[str, ...], str]], measure: str
) -> str:
    """With which models the claim holds, and in how many other readings with all of them."""
    _, models, verdict = said[measure]
    good = [
        reading.words
        for reading in READINGS[1:]
        if all(gains.gain(frame, m, measure, reading).verdict(measure) == verdict for m in models)
    ]
    held = [m for m in models if gains.gain(frame, m, measure).verdict(measure) == verdict]
    return (
        f"holds with {', '.join(held) or 'none'}; with all, in {len(good)} of {len(READINGS) - 1} "
        "other readings"
    )


# --- Tables 4 to 6 --------------------------------------------------------------------------------


def _superior(of: dict[str, ranks.Ranking]) -> list[str]:
    return [f"{m} to {name}" for m, found in of.items() for name in found.holding("*")]


def rank_claims(frame: pd.DataFrame) -> list[Claim]:
    """Which markers come back, and whether ENIR is ever worse."""
    told, worse, counted = [], [], 0
    for model, number in ranks.TABLES.items():
        there = {m: ranks.printed(model, m) for m in PAPERS_MEASURES}
        ours = {m: ranks.ranking(frame, model, m) for m in PAPERS_MEASURES}
        first, second = set(_superior(there)), set(_superior(ours))
        text = f"With {model}, ENIR is statistically superior in (Table {number})"
        shown = ("; ".join(_superior(there)), "; ".join(_superior(ours)) or "nothing")
        note = f"{len(first & second)} of {len(first)} come back, {len(second - first)} are new"
        told.append(Claim(text, *shown, first <= second, note))
        said, best = (
            [m for m, found in of.items() if found.ranks["ENIR"] == min(found.ranks.values())]
            for of in (there, ours)
        )
        text = f"With {model}, ENIR has the best average rank in (Table {number})"
        told.append(Claim(text, ", ".join(said), ", ".join(best) or "none", set(said) <= set(best)))
    for model in ranks.TABLES:
        for reading in READINGS:
            for measure in PAPERS_MEASURES:
                found = ranks.ranking(frame, model, measure, reading)
                counted += len(found.marks)
                lost = found.holding("⊛")
                worse += [f"{measure} to {name}, {model}, {reading.words}" for name in lost]
    first = [text for text in worse if text.endswith(f", {MAIN.words}")]
    ours = f"{len(first)} of {counted // len(READINGS)} comparisons: {'; '.join(first) or 'none'}"
    note = f"in all readings: {len(worse)} of {counted}"
    text = "ENIR is never statistically worse than IsoRegC or BBQ"
    told.append(
        Claim(text, f"none of {counted // len(READINGS)} comparisons", ours, not first, note)
    )
    return [*told, *against_isotonic(frame)]


def _before_isotonic(
    frame: pd.DataFrame, measures: tuple[str, ...], reading: Reading, ties: str, words: str
) -> Claim:
    """Whether ENIR ranks before IsoRegC in some measures, with every model."""
    there, ours, first = [], [], []
    for model in ranks.TABLES:
        for measure in measures:
            found = ranks.ranking(frame, model, f"{measure}{ties}", reading)
            there.append(f"{measure}, {model} {_two(ranks.printed(model, measure))}")
            ours.append(f"{measure}, {model} {_two(found)}")
            first.append(found.ranks["ENIR"] < found.ranks["IsoRegC"])
    text = words or f"ENIR ranks before IsoRegC in {' and '.join(measures)} with every model"
    note = "ranks of IsoRegC / ENIR; * ENIR is superior, ⊛ inferior"
    return Claim(text, "; ".join(there), "; ".join(ours), all(first), note)


def against_isotonic(frame: pd.DataFrame) -> list[Claim]:
    """What the lead over isotonic regression rests on: bins as in the program, order of ties."""
    text = MAIN._replace(enir="ENIR paper")
    binned = ("ECE", "MCE")
    together = ", ties together"
    return [
        _before_isotonic(frame, ("RMSE",), MAIN, "", ""),
        _before_isotonic(frame, ("RMSE",), text, "", "… also by the text to the letter"),
        _before_isotonic(frame, binned, MAIN, "", ""),
        _before_isotonic(frame, binned, MAIN, together, "… also if ties are kept together"),
    ]


def _two(found: ranks.Ranking) -> str:
    mark = found.marks["IsoRegC"]
    return f"{found.ranks['IsoRegC']:.2f}{mark} / {found.ranks['ENIR']:.2f}"


#: what ELiTE is said to lead over
LED = ("Platt", "Isotonic", "BBQ")


def elite_leads(frame: pd.DataFrame, platt: pd.DataFrame) -> Claim:
    """Whether ELiTE is better than three others: said without a measure."""
    texts, better, worse, total = [], 0, 0, 0
    for name in LED:
        results = platt if name == "Platt" else frame
        if results["dataset"].nunique() < FEWEST:
            continue
        found = [
            elite.difference(results, m, measure, elite.Pair("ELiTE paper", name, MAIN.suffix))
            for m in MODELS
            for measure in PAPERS_MEASURES
        ]
        measures = [measure for _ in MODELS for measure in PAPERS_MEASURES]
        verdicts = [one.verdict(measure) for one, measure in zip(found, measures, strict=True)]
        won, lost = (verdicts.count(word) for word in ("better", "worse"))
        better, worse, total = better + won, worse + lost, total + len(verdicts)
        texts.append(f"{name}: better in {won}, worse in {lost} of {len(verdicts)}")
    return Claim(
        "ELiTE performs superior to Platt's method, isotonic regression and BBQ",
        "cited from other work, no figures",
        f"beyond chance, than {'; than '.join(texts)}",
        better > total / 2 and not worse,
        "holds: better in more than half of measures × models and worse in none",
    )


# --- Table 8 --------------------------------------------------------------------------------------


def elite_claims(frame: pd.DataFrame) -> list[Claim]:
    """AUC and MCE better, all differences small, and eight times slower."""
    told = []
    for measure in ("AUC", "MCE"):
        there = {m: elite.printed(m, measure) for m in MODELS}
        ours = {m: elite.difference(frame, m, measure) for m in MODELS}
        text = f"ELiTE is better than ENIR in {measure}, beyond chance, with every model (Table 8)"
        shown = ("; ".join(f"{m} {d}" for m, d in found.items()) for found in (there, ours))
        told.append(Claim(text, *shown, all(d.verdict(measure) == "better" for d in ours.values())))
    every = [
        abs(elite.difference(frame, model, measure).median)
        for model in MODELS
        for measure in PAPERS_MEASURES
    ]
    largest = max(abs(elite.printed(m, name).median) for m in MODELS for name in PAPERS_MEASURES)
    text = "The median difference between ELiTE and ENIR is always below 0.01"
    told.append(
        Claim(text, f"at most {largest:.3f}", f"at most {max(every):.4f}", max(every) < 0.01)
    )
    there = "; ".join(
        f"{m} {times[1] / times[0]:.1f}" for m in MODELS for times in [elite.printed_times(m)]
    )
    slow, fast, text_fast = (
        {m: elite.seconds(frame, m, name) for m in MODELS}
        for name in ("ELiTE paper", MAIN.enir, "ENIR paper")
    )
    slower = [slow[m] / fast[m] for m in MODELS]
    ours = "; ".join(f"{m} {ratio:.1f}" for m, ratio in zip(MODELS, slower, strict=True))
    others = " / ".join(f"{slow[m] / text_fast[m]:.1f}" for m in MODELS)
    told.append(
        Claim(
            "ELiTE takes at least eight times as long as ENIR",
            there,
            ours,
            min(slower) >= 8.0,
            f"against ENIR by the text, of which few models need to be scored: {others}",
        )
    )
    return told
