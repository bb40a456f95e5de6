"""Draw the picture of which calibrator to take.

Run: python docs/scripts/make_decision_picture.py
"""

from __future__ import annotations

from box_drawing import BLUE, GREEN, PALE_BLUE, PALE_GREEN, WIDTH, arrow, box, new_page, save

#: questions and what to take if the answer is yes, in the order in which they are asked
QUESTIONS = (
    (
        "Fewer than\n20 rows of a class?",
        "Gather more rows.\nAutoCalibrator() mostly\nkeeps the scores till then.",
    ),
    (
        "Has only the\nbase rate changed?",
        "adjust_prior(c, target_rate=r)\nUnknown rate:\nestimate_rate()",
    ),
    (
        "Three or\nmore classes?",
        "AutoCalibrator()\nA network's logits,\nfew rows: Temperature()\n"
        "Confidence alone:\nTopLabelCalibrator()",
    ),
    (
        "Do groups of rows\nneed curves of\ntheir own?",
        "Named groups:\nSegmentedCalibrator()\nGroups to be found:\nFeatureCalibrator()",
    ),
    (
        "Is a special\nform wanted?",
        "Two or three numbers:\nPlatt(), Beta()\nSteps: Isotonic(), SBB()\n"
        "A band: BLS(levels=(0.9,))\nBounds that assume\nalmost nothing: VennAbers()",
    ),
)
LEFT, RIGHT, GAP, LINE = 1.5, 1.98, 0.24, 0.155
EDGE = 0.06
ANSWER = WIDTH - EDGE - RIGHT
#: the first and the last box
FIRST, LAST = 0.44, 0.6


def main() -> None:
    heights = [0.16 + LINE * (answer.count("\n") + 1) for _, answer in QUESTIONS]
    whole = 2 * EDGE + FIRST + LAST + sum(heights) + GAP * (len(heights) + 1)
    figure, axes = new_page(whole)
    wide, middle = WIDTH - 2 * EDGE, EDGE + LEFT / 2
    at = whole - EDGE - FIRST
    words = "You have scores and labels of rows\nthat the model was not trained on"
    box(axes, (EDGE, at, wide, FIRST), words, bold=True)
    answered = ""
    for (question, answer), height in zip(QUESTIONS, heights, strict=True):
        arrow(axes, (middle, at), (middle, at - GAP), answered, beside=(0.14, 0.0))
        at -= GAP + height
        answered = "no"
        box(axes, (EDGE, at, LEFT, height), question, fill=PALE_BLUE, edge=BLUE)
        place = (ANSWER, at, RIGHT, height)
        box(axes, place, answer, fill=PALE_GREEN, edge=GREEN, size=8, left=True)
        across = at + height / 2
        arrow(axes, (EDGE + LEFT, across), (ANSWER, across), "yes", beside=(-0.02, 0.09))
    arrow(axes, (middle, at), (middle, at - GAP), answered, beside=(0.14, 0.0))
    words = (
        "AutoCalibrator(), the default\n"
        "It is judged on rows held out, and\nkeeps your scores if nothing helps."
    )
    box(axes, (EDGE, EDGE, wide, LAST), words, fill=PALE_GREEN, edge=GREEN, bold=True)
    save(figure, "which_calibrator")


if __name__ == "__main__":
    main()
