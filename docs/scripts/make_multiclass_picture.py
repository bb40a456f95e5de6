"""Draw the picture of docs/howto/multiclass.md anew.

Above, three codes for four classes; below, what the combiners make of answers that contradict each
other, while one of them goes from 0 to 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import calibrant as cal

PICTURE = Path(__file__).parent.parent / "pictures" / "multiclass.png"
#: the colours of Okabe and Ito, told apart by all readers
ORANGE, BLUE, GREEN = "#E69F00", "#0072B2", "#009E73"
GREY = "0.92"
COLOURS = {1: BLUE, 0: GREY, -1: ORANGE}
SIGNS = {1: "+", 0: "", -1: "−"}
CODES = {
    "one against the rest": cal.multiclass.one_vs_rest(4),
    "all pairs": cal.multiclass.all_pairs(4),
    "exhaustive": cal.multiclass.ecoc(4, design="exhaustive"),
}
#: answers of three columns, the first one from 0 to 1, and what the columns are
ANSWERS = {
    "one against the rest: r₂ = 0.4, r₃ = 0.2": (cal.multiclass.one_vs_rest(3), (0.4, 0.2)),
    "all pairs: r₁₃ = 0.2, r₂₃ = 0.9": (cal.multiclass.all_pairs(3), (0.2, 0.9)),
}
LINES = {
    "normalisation": (cal.multiclass.normalize, GREEN, "-"),
    "least squares": (cal.multiclass.least_squares, ORANGE, "--"),
    "coupling": (cal.multiclass.coupling, BLUE, "-"),
}


def draw_code(axes: Any, name: str, code: cal.multiclass.Code) -> None:
    """A matrix of signs: classes down, columns across."""
    for row, column in np.ndindex(code.matrix.shape):
        entry = int(code.matrix[row, column])
        box = mpl.patches.Rectangle((column, row), 0.92, 0.92, color=COLOURS[entry], lw=0)
        axes.add_patch(box)
        axes.text(column + 0.46, row + 0.48, SIGNS[entry], ha="center", va="center", color="white")
    axes.set(xlim=(-0.05, len(code)), ylim=(code.n_classes, -0.05), aspect="equal", xticks=[])
    axes.set_yticks(np.arange(code.n_classes) + 0.46, list("abcd"))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(f"{name}\n{len(code)} columns, separation {code.row_separation:g}", fontsize=9)


def draw_answers(
    axes: Any, name: str, code: cal.multiclass.Code, others: tuple[float, float]
) -> None:
    """The first class's probability by the first answer."""
    first = np.linspace(0, 1, 401)
    r = np.column_stack([first, *(np.full(len(first), value) for value in others)])
    for combiner, (combine, colour, style) in LINES.items():
        if combine is cal.multiclass.normalize and "pairs" in name:
            continue
        p = combine(r, code)[:, 0]
        axes.plot(first, p, style, color=colour, lw=1.6, label=combiner)
    axes.set(xlabel="first answer r", xlim=(0, 1), ylim=(0, 1))
    axes.set(xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(name, fontsize=9)


def picture() -> Figure:
    figure = Figure(figsize=(7.2, 4.8), dpi=150, layout="constrained")
    figure.get_layout_engine().set(h_pad=0.09)
    above, below = figure.subfigures(2, 1, height_ratios=[1, 1.45])
    widths = [len(code) for code in CODES.values()]
    for axes, (name, code) in zip(
        above.subplots(1, 3, width_ratios=widths), CODES.items(), strict=True
    ):
        draw_code(axes, name, code)
    panels = below.subplots(1, 2, sharey=True)
    for axes, (name, given) in zip(panels, ANSWERS.items(), strict=True):
        draw_answers(axes, name, *given)
    panels[0].set_ylabel("probability of the first class")
    below.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        fontsize=8,
        frameon=False,
    )
    return figure


def main() -> None:
    PICTURE.parent.mkdir(exist_ok=True)
    with mpl.rc_context({"font.size": 9, "axes.linewidth": 0.7}):
        # without the version of matplotlib, an unchanged picture stays the same file
        picture().savefig(PICTURE, metadata={"Software": None})


if __name__ == "__main__":
    main()
