"""Draw the rooms of the package as the staircase that pyproject.toml makes of them.

Run: python docs/scripts/make_house_picture.py
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from box_drawing import BLUE, DARK, PALE_BLUE, WIDTH, arrow, box, new_page, save

ROOT = Path(__file__).parent.parent.parent
EDGE, INDENT, LINE = 0.06, 0.1, 0.155


def layers() -> list[list[str]]:
    """The rooms of each step, from the lowest."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    stairs = next(one for one in contracts if one["name"].startswith("The staircase"))
    return [[room.strip() for room in step.split("|")] for step in reversed(stairs["layers"])]


def in_lines(rooms: list[str], letters: int) -> str:
    """The rooms of a step, in as few lines as fit."""
    lines = [rooms[0]]
    for room in rooms[1:]:
        longer = f"{lines[-1]}  ·  {room}"
        if len(longer) <= letters:
            lines[-1] = longer
        else:
            lines.append(room)
    return "\n".join(lines)


def main() -> None:
    steps = layers()
    wides = [WIDTH - 2 * EDGE - INDENT * place for place in range(len(steps))]
    texts = [in_lines(rooms, int(16 * wide)) for rooms, wide in zip(steps, wides, strict=True)]
    heights = [0.12 + LINE * (text.count("\n") + 1) for text in texts]
    whole = 2 * EDGE + sum(heights)
    figure, axes = new_page(whole)
    at = EDGE
    for place, (text, wide, height) in enumerate(zip(texts, wides, heights, strict=True)):
        x = EDGE + INDENT * place
        box(axes, (x, at, wide, height), text, fill=PALE_BLUE, edge=BLUE, left=True)
        at += height
    axes.text(EDGE, whole - 0.1, "A room may\nimport from the\nsteps below.", fontsize=8.5,
              color=DARK, ha="left", va="top", linespacing=1.25)  # fmt: skip
    arrow(axes, (EDGE + 0.12, whole - 0.7), (EDGE + 0.12, whole - 1.5))
    save(figure, "house")


if __name__ == "__main__":
    main()
