"""Draw the picture of the way from scores to a report.

Run: python docs/scripts/make_flow_picture.py
"""

from __future__ import annotations

from box_drawing import (
    BLUE,
    GREEN,
    PALE_BLUE,
    PALE_GREEN,
    PALE_GREY,
    WIDTH,
    arrow,
    box,
    new_page,
    save,
)

#: what stands below each other: words, and whether it is data (or a step)
STEPS = (
    ("A model's scores and what happened\nlist, array, frame, file or database", True),
    ("Check and count\nequal scores become one line of a table", False),
    ("Fit and judge\non rows held out, against no calibration", False),
    ("A calibrator\none small JSON file", True),
)
#: what is made of a calibrator
ENDS = (
    ("Measure\nintervals,\ntests, diagrams", "One HTML\nreport"),
    ("Apply\nPython, SQL,\nONNX, DuckDB", "Probabilities\nwhere the\nrows are"),
    ("Watch\nnew outcomes,\nday by day", "Alarm\nand repair"),
)
EDGE, GAP, TALL, STEP, END = 0.06, 0.22, 0.5, 0.66, 0.58


def main() -> None:
    whole = 2 * EDGE + len(STEPS) * (TALL + GAP) + STEP + GAP + END
    figure, axes = new_page(whole)
    at = whole - EDGE
    for place, (words, data) in enumerate(STEPS):
        if place:
            arrow(axes, (WIDTH / 2, at), (WIDTH / 2, at - GAP))
            at -= GAP
        at -= TALL
        fill, edge = (PALE_GREEN, GREEN) if data else (PALE_BLUE, BLUE)
        box(axes, (EDGE, at, WIDTH - 2 * EDGE, TALL), words, fill=fill, edge=edge, size=9)
    wide = (WIDTH - 2 * EDGE - 2 * 0.1) / 3
    for place, (step, end) in enumerate(ENDS):
        x = EDGE + place * (wide + 0.1)
        middle = x + wide / 2
        arrow(axes, (middle, at), (middle, at - GAP))
        box(axes, (x, at - GAP - STEP, wide, STEP), step, fill=PALE_BLUE, edge=BLUE, size=8.5)
        low = at - GAP - STEP
        arrow(axes, (middle, low), (middle, low - GAP))
        box(axes, (x, low - GAP - END, wide, END), end, fill=PALE_GREY, size=8.5)
    save(figure, "flow")


if __name__ == "__main__":
    main()
