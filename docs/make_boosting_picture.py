"""The picture of the page on boosting: ``python docs/make_boosting_picture.py``.

Needs the datasets; see `experiments/data.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from experiments.boosting import booster, rows_of  # noqa: E402
from experiments.data import tasks  # noqa: E402

import calibrant as cal  # noqa: E402


def main() -> None:
    task = next(task for task in tasks(0) if task.name == "covtype_largest")
    rows = rows_of(task)
    model = booster("tree", steps=1024).fit(rows.train, rows.y)
    panels = cal.boosting_panels(model, rows.test, rows.y_test)
    cal.panel_diagram(panels).savefig(HERE / "pictures" / "boosting_covertype.png", dpi=100)


if __name__ == "__main__":
    main()
