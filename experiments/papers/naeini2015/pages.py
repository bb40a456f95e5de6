"""The tables for reading: published figures beside ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from experiments import table
from experiments.papers.beside import Beside, beside, count, pick, positives, told_within, wide
from experiments.papers.naeini2015 import adult, orders, simulated, spect
from experiments.papers.naeini2015.methods import (
    ABB_BY_TEXT,
    ACP,
    BASE,
    CELLS,
    MEASURES,
    READINGS,
    TABLE_1,
)
from experiments.papers.published import published

NAME = "naeini2015"
#: the columns in the order of the paper
COLUMNS = (BASE, "ACP", "IsoReg", "Platt", "Hist", "SBB", "ABB")
Judge = Callable[[float, Sequence[float]], Beside]
Groups = dict[str, dict[str, Beside]]


def printed(name: str) -> dict[str, dict[str, float]]:
    """Measure → method → published figure of a part of Table 1."""
    found: dict[str, dict[str, float]] = {}
    for line in published(NAME, name).itertuples():
        found.setdefault(line.measure, {})[line.method] = float(line.value)
    return found


def by_draws(value: float, found: Sequence[float]) -> Beside:
    """A published figure beside the mean over draws."""
    return beside(value, found)


def by_first(value: float, found: Sequence[float]) -> Beside:
    """A published figure beside that of the first run (the paper's own rows), spread by all."""
    every = beside(value, found)
    return every._replace(mean=float(found[0])) if len(found) else every


def groups(
    name: str, frame: pd.DataFrame, judge: Judge = by_draws, columns: Sequence[str] = COLUMNS
) -> Groups:
    """Measure → method → published figure and ours, of the methods that the paper's table has."""
    figures = printed(name)
    return {
        measure: {
            method: judge(figures[measure][method], pick(frame, method, measure))
            for method in columns
            if method in figures[measure]
        }
        for measure in MEASURES
    }


def against(name: str, frame: pd.DataFrame, rivals: Mapping[str, str], judge: Judge) -> Groups:
    """The published figures of a method beside ours of others: column → the paper's method."""
    figures = printed(name)
    return {
        measure: {
            ours: judge(figures[measure][theirs], pick(frame, ours, measure))
            for ours, theirs in rivals.items()
        }
        for measure in MEASURES
    }


def flat(found: Groups) -> list[Beside]:
    return [cell for cells in found.values() for cell in cells.values()]


def named(name: str, found: Groups) -> Groups:
    """The same with the model's own column under the model's name, as in the paper."""
    model = model_of(name)
    return {
        measure: {model if method == BASE else method: cell for method, cell in cells.items()}
        for measure, cells in found.items()
    }


def model_of(name: str) -> str:
    return str(published(NAME, name)["model"].iloc[0])


def readings(name: str, frame: pd.DataFrame, judge: Judge, columns: Sequence[str]) -> str:
    """MCE and ECE in our own readings: nothing is published to stand beside them."""
    heads = [model_of(name) if column == BASE else column for column in columns]
    rows = [
        (
            measure,
            *(
                judge(np.nan, found).ours if len(found := pick(frame, column, measure)) else ""
                for column in columns
            ),
        )
        for measure in READINGS
    ]
    return table(("measure", *heads), rows)


def section(name: str, frame: pd.DataFrame, judge: Judge = by_draws) -> str:
    """A part of Table 1: the published figures beside ours, ACP's variants, our own readings."""
    found = groups(name, frame, judge)
    has_acp = "ACP" in printed(name)["AUC"]
    parts = [
        f"Published / ours; {count(flat(found))} published figures lie within the spread "
        f"(† marks the others). {told_within(flat(found))}",
        wide(named(name, found), "measure"),
    ]
    if has_acp:
        parts += [
            "The published figures of ACP beside other intervals:",
            _without_order(wide(against(name, frame, dict.fromkeys(ACP, "ACP"), judge), "measure")),
        ]
    by_text = dict.fromkeys(ABB_BY_TEXT, "ABB")
    if len(pick(frame, next(iter(by_text)), MEASURES[0])):
        parts += [
            "The published figures of ABB beside ABB as the text has it (one λ, and the highest "
            f"scores of sub-binnings in place of their sums; cached: in {CELLS} cells):",
            _without_order(wide(against(name, frame, by_text, judge), "measure")),
        ]
    columns = [*TABLE_1, *(ACP if has_acp else ())]
    parts += ["MCE and ECE in our readings:", readings(name, frame, judge, columns)]
    return "\n\n".join(parts)


def _without_order(text: str) -> str:
    """Variants of one method stand beside the same figure: there is no order to keep."""
    return "\n".join(line.rsplit("|", 2)[0] + "|" for line in text.splitlines())


# --- Table 1 --------------------------------------------------------------------------------------


def page_xor(frame: pd.DataFrame) -> str:
    """Draws near a diagonal, and all draws."""
    near = simulated.near_diagonal(frame)
    parts = [
        f"### The {len(near)} of {len(frame)} draws within {simulated.NEAR:g}° of a diagonal",
        section("1a", near),
        f"### All {len(frame)} draws",
        'The standard deviations are so large here that "within the spread" says little.',
        section("1a", frame),
    ]
    return "\n\n".join(parts)


def page_circular(frame: pd.DataFrame) -> str:
    return f"{len(frame)} draws.\n\n{section('1b', frame)}"


#: predictions that are all but constant, and the published rows that they resemble
CONSTANT = {adult.FLAT: BASE, adult.STUCK: "Platt"}
WHAT = {
    adult.ALL: {
        "NB": "all fourteen attributes",
        "SVM": "all fourteen attributes (words one-hot)",
        "LR": "all fourteen attributes (words one-hot)",
    },
    adult.WORDS: {
        "NB": "the eight nominal attributes only",
        "SVM": "the eight nominal attributes only (one-hot)",
        "LR": "the eight nominal attributes only, as codes 0, 1, 2, … in alphabetical order",
    },
    adult.TWO: {"LR": "age and hours per week only"},
}


def adult_page(name: str, model: str) -> Callable[[pd.DataFrame], str]:
    """A table of Adult in its two readings of what the model sees."""

    def page(frame: pd.DataFrame) -> str:
        parts = []
        for reading, words in WHAT.items():
            part = frame[frame["reading"] == reading]
            if len(part):
                title = words[model][0].upper() + words[model][1:]
                parts += [f"### {title}: {len(part)} draws", section(name, part)]
            if model == "SVM" and len(part):
                parts += [
                    "The published figures of the SVM and of its Platt beside predictions that "
                    "are all but constant, in the order of the scores (the first at the SVM's "
                    "published MCE, the second at the share of positives):",
                    _without_order(wide(against(name, part, CONSTANT, by_draws), "measure")),
                ]
        return "\n\n".join([*parts, positives(["adult"])])

    return page


MODEL_TABLES = {"NB": "1c", "SVM": "1d", "LR": "1e"}


def page_encodings(frame: pd.DataFrame) -> str:
    """Each model's own figures by what it sees of the attributes."""
    parts = []
    for model, name in MODEL_TABLES.items():
        part, figures = frame[frame["model"] == model], printed(name)
        if not len(part):
            continue
        rows = []
        for encoding in adult.ENCODINGS:
            cells = [
                beside(figures[measure][BASE], pick(part, encoding, measure))
                for measure in adult.PLAIN
            ]
            texts = [f"{cell.ours}{' †' if cell.within is False else ''}" for cell in cells]
            rows.append((encoding, *texts))
        wanted = ("**published**", *(f"{figures[m][BASE]:.3f}" for m in adult.PLAIN))
        parts.append(f"{model}, {len(part)} draws († marks where the published figure is outside):")
        parts.append(table(("attributes", *adult.PLAIN), [wanted, *rows]))
    return "\n\n".join([*parts, positives(["adult"])])


def spect_page(name: str) -> Callable[[pd.DataFrame], str]:
    """A table of SPECT: ours is of the paper's own rows, the spread of resampled test rows."""

    def page(frame: pd.DataFrame) -> str:
        found = flat(groups(name, frame, by_first))
        close = sum(abs(cell.published - cell.mean) <= CLOSE for cell in found)
        return (
            f"Ours: on the paper's rows ± the standard deviation over {len(frame) - 1} resamples "
            f"of the test rows. {close} of {len(found)} figures are within {CLOSE:g} of ours.\n\n"
            + section(name, frame, by_first)
            + f"\n\n{POSITIVE}"
        )

    return page


#: the paper does not name the class that it calls positive, it counts it
POSITIVE = (
    "spect: positive is 0, a normal image: the paper counts 15 positives among the 187 test rows, "
    "and so many are of class 0."
)
#: how near counts as the same figure, where both are of the same rows
CLOSE = 0.02
SPECT_TABLES = {"NB": "1f", "SVM": "1g", "LR": "1h"}


def page_variants(frame: pd.DataFrame) -> str:
    """SPECT with other settings of each model: a few figures that tell them apart."""
    shown = [(BASE, measure) for measure in MEASURES] + [("Platt", "RMSE"), ("ABB", "RMSE")]
    parts = ["The setting of Table 1 comes first. All on the paper's own rows."]
    for model, name in SPECT_TABLES.items():
        part, figures = frame[frame["model"] == model], printed(name)
        if not len(part):
            continue
        heads = [f"{model if method == BASE else method} {measure}" for method, measure in shown]
        rows = [
            ("**published**", *(f"{figures[measure][method]:.3f}" for method, measure in shown))
        ]
        for line in part.to_dict("records"):
            values = (line[f"{method} {measure}"] for method, measure in shown)
            rows.append((line["variant"], *(f"{value:.3f}" for value in values)))
        parts.append(table((model, *heads), rows))
    return "\n\n".join([*parts, GAPS, gaps(frame), POSITIVE])


GAPS = """Where a step sits between two training scores is a matter of choice (ours: halfway). It
matters where many test scores fall between two training scores. Isotonic regression with its steps
at the left end of each gap / halfway / at the right end:"""


def gaps(frame: pd.DataFrame) -> str:
    """Isotonic regression by where its steps sit, for the settings of Table 1."""
    rows = []
    for model, name in SPECT_TABLES.items():
        part = frame[(frame["model"] == model) & (frame["variant"] == spect.FIRST[model])]
        for line in part.to_dict("records"):
            cells = (
                " / ".join(f"{line[f'IsoReg {cut} {measure}']:.3f}" for cut in spect.CUTS)
                for measure in ("ACC", "RMSE")
            )
            wanted = (f"{printed(name)[measure]['IsoReg']:.3f}" for measure in ("ACC", "RMSE"))
            share = f"{100 * line['in the gap']:.0f} %"
            acc, rmse = (f"{theirs}: {mine}" for theirs, mine in zip(wanted, cells, strict=True))
            rows.append((model, f"{line['gap']:.2f}", share, acc, rmse))
    heads = ("widest gap", "test scores in it", "ACC, published: ours", "RMSE, published: ours")
    return table(("model", *heads), rows)


# --- Table 2 --------------------------------------------------------------------------------------

#: the names of the methods in the later paper's Table 7
LATER = {"IsoReg": "IsoRegC"}


def growth(method: str, step: str) -> tuple[str, str]:
    """The published orders of a fit or a query: in this paper, and in the one of 2018."""
    found = []
    for paper, name, word in ((NAME, "2", method), ("naeini2018", "7", LATER.get(method, method))):
        part = published(paper, name)
        lines = part[(part["method"] == word) & (part["measure"] == step)]
        found.append(str(lines["value"].iloc[0]) if len(lines) else "–")
    return found[0], found[1]


def _slope(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def _seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def page_orders(frame: pd.DataFrame) -> str:
    """Published orders, ours, and slopes, of a fit and of a query."""
    fits, queries = [], []
    for name, method in orders.METHODS.items():
        rows, small = (orders.times(frame, name, column) for column in ("rows", "query"))
        if not len(rows):
            continue
        slopes = [_slope(orders.slope(frame, name, c)) for c in ("rows", "table")]
        largest = f"{_seconds(rows.iloc[-1])} at {rows.index[-1]:,}"
        fits.append((name, *growth(name, "fit"), method.fit, *slopes, largest))
        slopes = [_slope(orders.slope(frame, name, c)) for c in ("query", "map")]
        largest = f"{_seconds(small.iloc[-1])} at {small.index[-1]:,}"
        queries.append((name, *growth(name, "query"), method.query, *slopes, largest))
    head = ("method", "published 2015", "published 2018 (its Table 7)", "ours")
    fit_head = (*head, "slope, from rows", "slope, from the score table", "CPU time from rows")
    query_head = (*head, "slope, `calibrate`", "slope, map alone", "CPU time, `calibrate`")
    parts = ("Fits:", table(fit_head, fits), "One query:", table(query_head, queries))
    return "\n\n".join(parts) + "\n\n" + ORDERS


ORDERS = """N rows with as many distinct scores (D = N); b bins or pieces, M models, R cells of a
cache, T iterations. Slope: d log(CPU time)/d log N over the largest tenfold range of N that was
run; N log N has a slope of 1.1 there. A fit from rows sorts them, a fit from the table of
distinct scores does not. A published "–": the paper does not list the method."""
