"""What the paper says, in sentences that figures can bear out or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.papers.beside import MOST, Beside, counted, is_repeated
from experiments.papers.cells import Claim
from experiments.papers.published import NOT_LEGIBLE
from experiments.papers.zadrozny2002 import binning, curves, newsgroups, pendigits, two_class
from experiments.papers.zadrozny2002.columns import COMBINERS
from experiments.papers.zadrozny2002.scores import CODINGS, DRAWN

Frames = dict[str, pd.DataFrame]


class LackingError(Exception):
    """The cells that a claim needs are not there yet."""


class Found(NamedTuple):
    published: str
    ours: str
    holds: bool | None
    note: str = ""
    tables: tuple[str, ...] = ()
    selection: str = ""


# --- Adult ----------------------------------------------------------------------------------------


def adult(frames: Frames, model: str, coding: str) -> pd.Series:
    """The figures on Adult's own rows."""
    row = two_class.itself(frames["adult"], model, coding)
    if row is None:
        raise LackingError
    return row


def three(figures: dict[str, float]) -> str:
    """Raw, sigmoid, PAV."""
    return " → ".join(f"{value:.4f}" for value in figures.values())


def ordered(model: str, measure: str, order: Callable[[dict[str, float]], bool]) -> Judge:
    """Do raw, sigmoid and PAV stand in this order, on the test rows; and with how many codings?"""

    def judge(frames: Frames) -> Found:
        def ours(coding: str) -> dict[str, float]:
            row = adult(frames, model, coding)
            return {name: float(row[f"{name} {measure}"]) for name in two_class.PRINTED}

        chosen = DRAWN["adult", model]
        names = CODINGS["adult"][model]
        kept = sum(order(ours(coding)) for coding in names)
        told = two_class.told(model)[measure]
        note = f"{chosen}; holds with {kept} of {len(names)} codings"
        part = f"1 of them: {chosen}, the source's rows"
        holds = order(ours(chosen))
        return Found(three(told), three(ours(chosen)), holds, note, ("adult",), part)

    return judge


def raised(frames: Frames) -> Found:
    """Does calibration raise the machine's error: on the source's rows, and over draws?"""
    found = ordered("SVM", "error test", _raises)(frames)
    frame, chosen = frames["adult"], DRAWN["adult", "SVM"]
    drawn = frame[(frame["model"] == "SVM") & (frame["coding"] == chosen) & (frame["seed"] > 0)]
    counts = [
        f"{name} in {int((drawn[f'{name} error test'] > drawn['base error test']).sum())}"
        for name in ("Sigmoid", "PAV")
    ]
    more = f"of {len(drawn)} draws of training rows raised by {', by '.join(counts)}"
    return found._replace(note=f"{found.note}; {more}")


def no_overfit(frames: Frames) -> Found:
    """How much higher the MSE of test rows is than that of training rows."""
    told, gaps = [], []
    for model in CODINGS["adult"]:
        row, given = adult(frames, model, DRAWN["adult", model]), two_class.told(model)
        for name in two_class.PRINTED:
            told.append(given["MSE test"][name] - given["MSE training"][name])
            gaps.append(float(row[f"{name} MSE test"] - row[f"{name} MSE training"]))
    tic = two_class.itself(frames["tic"], "SVM", DRAWN["tic", "SVM"])
    note = ""
    if tic is not None:
        gap = tic["PAV MSE test"] - tic["PAV MSE training"]
        note = f"on TIC the gap of PAV SVM is {gap:.4f}"
    ours = f"at most {max(gaps):.4f}"
    part = f"{len(CODINGS['adult'])} of them: a coding of each model, the source's rows"
    holds = max(gaps) < 0.005
    return Found(f"at most {max(told):.4f}", ours, holds, note, ("adult",), part)


def reliability(figure: str) -> Judge:
    """Raw scores rise with the share of positives, but are off the diagonal."""

    def judge(frames: Frames) -> Found:
        texts, good = [], []
        for panel in curves.FIGURES[figure]:
            part = curves.points(frames[figure], panel)
            if part.empty:
                raise LackingError
            up, steps = curves.rising(part)
            off = int(part["off"].sum())
            falls = f"{steps - up} of {steps} steps down"
            texts.append(f"{panel.title}: {off} of {len(part)} bins off, {falls}")
            good.append(2 * off >= len(part) and up == steps)
        note = "off the diagonal, down: by more than two standard errors"
        return Found("drawn only", "; ".join(texts), all(good), note, (figure,))

    return judge


def sigmoidal(frames: Frames) -> Found:
    """How far the test rows are from the sigmoid learned on the training rows."""
    far = {}
    for panel in curves.FIGURES["figure3"]:
        part = curves.points(frames["figure3"], panel)
        if part.empty:
            raise LackingError
        far[panel.title] = curves.mean_gap(part)
    ours = "; ".join(f"{name}: mean distance {gap:.4f}" for name, gap in far.items())
    holds = next(iter(far.values())) < 0.02
    return Found("drawn only", ours, holds, "Adult is judged, at 0.02", ("figure3",))


def always_worse(reading: str) -> Judge:
    """Binning against PAV, in one reading of "bin size"."""

    def judge(frames: Frames) -> Found:
        frame = frames["binning"]
        frame = frame[frame["reading"] == reading]
        if len(frame) < len(binning.MODELS) * len(binning.SIZES):
            raise LackingError
        texts = [
            f"{model}: worse with {int((part['above'] > 0).sum())} of {len(part)} sizes"
            for model, part in frame.groupby("model", sort=False)
        ]
        low = frame.loc[frame["above"].idxmin()]
        note = (
            f"least gap {low['above']:.5f}, standard error {low['standard error']:.5f}"
            f" ({low['model']}, {low['size']:.0f} {reading})"
        )
        part = f"{len(frame)} of them: by {reading}"
        holds = bool((frame["above"] > 0).all())
        return Found("always", "; ".join(texts), holds, note, ("binning",), part)

    return judge


# --- several classes ------------------------------------------------------------------------------


#: note, table and selection of what is said of Pendigits
OF_DIGITS = ("", ("4",), "2 of them: Gaussian naive Bayes, plain and boosted, one against the rest")


def digits(frames: Frames, model: str, numbers: str = "Gaussian") -> pd.Series:
    keys = {"numbers": numbers, "code": "one_vs_rest", "model": model, "on": "train"}
    row = pendigits.line(frames["4"], **keys)
    if row is None:
        raise LackingError
    return row


def calibrated_digits(frames: Frames) -> Found:
    """Is MSE and error lower after PAV, for each model and combiner?"""
    texts, good = [], []
    for model in pendigits.BOOSTED:
        row = digits(frames, model)
        for measure in ("MSE", "error"):
            lower = [row[f"PAV {c} {measure}"] < row[f"raw {c} {measure}"] for c in COMBINERS]
            good += lower
            texts.append(f"{measure} of {model}: lower with {sum(lower)} of {len(lower)}")
    return Found(NOT_LEGIBLE, "; ".join(texts), all(good), *OF_DIGITS)


def less_difference(frames: Frames) -> Found:
    """Range of MSE over combiners, before and after PAV."""
    texts, good = [], []
    for model in pendigits.BOOSTED:
        row = digits(frames, model)
        before, after = (pendigits.spread(row, c) for c in ("raw", "PAV"))
        good.append(after < before)
        texts.append(f"{model}: range of MSE {before:.4f} → {after:.4f}")
    return Found(NOT_LEGIBLE, "; ".join(texts), all(good), *OF_DIGITS)


def news_groups(frames: Frames) -> dict[str, dict[str, Beside]]:
    """Table 5 beside ours."""
    if newsgroups.part(frames["5"], model="NB", on="train", **newsgroups.MAIN).empty:
        raise LackingError
    return newsgroups.stands(frames["5"], **newsgroups.MAIN)


def news(frames: Frames) -> tuple[dict[str, float], dict[str, float]]:
    """Published and our mean MSE."""
    cells = news_groups(frames)["MSE"]
    told = {name: cell.published for name, cell in cells.items()}
    return told, {name: cell.mean for name, cell in cells.items()}


def of_news(frames: Frames) -> tuple[tuple[str, ...], str]:
    """Table and selection of what is said of 20 Newsgroups."""
    runs = newsgroups.part(frames["5"], model="NB", on="train", **newsgroups.MAIN)
    return ("5",), f"{len(runs)} of them: counts of words, α = 1, PAV on the training rows"


def news_figures(frames: Frames) -> Found:
    """Whether Table 5 itself comes back."""
    cells = [cell for group in news_groups(frames).values() for cell in group.values()]
    said = (f"{len(cells)} figures, means of ten splits", counted(cells), is_repeated(cells))
    rule = f"holds: at least {MOST:.0%} within"
    return Found(*said, rule, *of_news(frames))


def shown(figures: dict[str, float], names: list[str]) -> str:
    return ", ".join(f"{name} {figures[name]:.5f}" for name in names)


def news_calibrated(frames: Frames) -> Found:
    told, ours = news(frames)
    pairs = [(f"NB {c}", f"PAV NB {c}") for c in COMBINERS]

    def text(figures: dict[str, float]) -> str:
        return ", ".join(f"{b[4:]} {figures[a]:.5f} → {figures[b]:.5f}" for a, b in pairs)

    holds = all(ours[b] < ours[a] for a, b in pairs)
    return Found(text(told), text(ours), holds, "", *of_news(frames))


def news_norm(frames: Frames) -> Found:
    told, ours = news(frames)
    names = [f"PAV NB {c}" for c in COMBINERS]
    best = [
        min(names, key=newsgroups.means(frames["5"], words).__getitem__)
        for words in newsgroups.WORDS
        if len(newsgroups.part(frames["5"], data="19997", words=words))
    ]
    note = f"with {best.count(names[0])} of {len(best)} ways to count words"
    holds = min(names, key=ours.__getitem__) == names[0]
    return Found(shown(told, names), shown(ours, names), holds, note, *of_news(frames))


def coupling_is_least_squares(frames: Frames) -> Found:
    """After PAV the published coupling equals least squares: so does the printed iteration."""
    told, ours = news(frames)
    runs = newsgroups.part(frames["5"], model="NB", on="train", **newsgroups.MAIN)
    printed = float(runs["PAV Coup, as printed MSE"].mean())
    ls, coup = ours["PAV NB LS"], ours["PAV NB Coup"]
    text = f"LS {ls:.5f}; coupling {coup:.5f}, as printed {printed:.5f}"
    note = "the iteration printed for coupling does not end at the minimum of the divergence"
    spread = float(runs["PAV Coup MSE"].std())  # between splits
    holds = abs(coup - ls) < spread if spread > 0 else None
    said = shown(told, ["PAV NB LS", "PAV NB Coup"])
    return Found(said, text, holds, note, *of_news(frames))


# --- profit ---------------------------------------------------------------------------------------


def profit_follows(frames: Frames) -> Found:
    """Of two of raw, sigmoid and PAV, does the one of lower MSE bring more, over simulations?"""
    frame = frames["profit"]
    if frame.empty:
        raise LackingError
    texts, good = [], []
    for model, part in frame.groupby("model", sort=False):
        agree, pairs = 0, 0
        for a, b in (("base", "Sigmoid"), ("base", "PAV"), ("Sigmoid", "PAV")):
            mse = part[f"{a} MSE"] < part[f"{b} MSE"]
            more = part[f"{a} profit"] > part[f"{b} profit"]
            agree, pairs = agree + int((mse == more).sum()), pairs + len(part)
        texts.append(f"{model}: in {agree} of {pairs} pairs")
        good.append(agree > 0.5 * pairs + np.sqrt(pairs))  # two standard errors of a coin
    said = "cited from earlier work"
    return Found(said, "; ".join(texts), all(good), "simulated donors", ("profit",))


def unreadable(why: str) -> Judge:
    return lambda frames: Found(NOT_LEGIBLE, "–", None, why)


Judge = Callable[[Frames], Found]


def _sinks(figures: dict[str, float]) -> bool:
    return figures["base"] > figures["Sigmoid"] > figures["PAV"]


def _raises(figures: dict[str, float]) -> bool:
    return figures["base"] < min(figures["Sigmoid"], figures["PAV"])


CLAIMS: tuple[tuple[str, Judge], ...] = (
    (
        "Adult: a sigmoid lowers the test MSE of naive Bayes, and PAV lowers it more",
        ordered("NB", "MSE test", _sinks),
    ),
    ("Adult: and the same for its test error", ordered("NB", "error test", _sinks)),
    (
        "Adult: a sigmoid lowers the test MSE of the SVM, and PAV slightly more",
        ordered("SVM", "MSE test", _sinks),
    ),
    (
        "Adult: calibration slightly raises the test error of the SVM",
        raised,
    ),
    (
        "The models do not overfit, so the training rows can serve to calibrate (test MSE less than"
        " 0.005 above training MSE)",
        no_overfit,
    ),
    (
        "Figure 1: scores of naive Bayes rise with the probability but are not calibrated",
        reliability("figure1"),
    ),
    (
        "Figure 2: rescaled scores of the SVM rise with the probability but are not calibrated",
        reliability("figure2"),
    ),
    ("Figure 3: the SVM's probabilities on Adult follow a sigmoid", sigmoidal),
    (
        "Adult: binning is always worse than PAV (bins of 5 to 50 training rows)",
        always_worse("rows in a bin"),
    ),
    ("… if 5 to 50 is the number of bins", always_worse("bins")),
    (
        "Pendigits: PAV before combining lowers MSE and error, whatever the combiner",
        calibrated_digits,
    ),
    ("Pendigits: after PAV it matters less how columns are combined", less_difference),
    ("20 Newsgroups: the figures of Table 5", news_figures),
    ("20 Newsgroups: PAV lowers the MSE with every combiner", news_calibrated),
    ("20 Newsgroups: after PAV normalisation has the lowest MSE", news_norm),
    (
        "20 Newsgroups: after PAV coupling and least squares have the same MSE (Table 5)",
        coupling_is_least_squares,
    ),
    ("MSE tends to go with profit", profit_follows),
    (
        "KDD-98: table of MSE and profit",
        unreadable("and the data's terms keep them out: the evaluation is run on simulated donors"),
    ),
    ("TIC: table of MSE and error", unreadable("ours is given without it")),
)


def claims(frames: Frames) -> list[Claim]:
    found = []
    for text, judge in CLAIMS:
        try:
            found.append(Claim(text, *judge(frames)))
        except LackingError:
            found.append(Claim(text, "", "not run yet", None))
    return found
