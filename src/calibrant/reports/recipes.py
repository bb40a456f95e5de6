"""How to apply a map elsewhere: lines to copy."""

from __future__ import annotations

import shlex

from calibrant.fitted import Fitted
from calibrant.maps import Identity, VectorMap
from calibrant.reports.sql import select
from calibrant.reports.value import Recipe

__all__ = ["recipes_for"]


def recipes_for(fitted: Fitted, score: str, file: str) -> tuple[Recipe, ...]:
    """Python, the command line and SQL, as far as the map allows.

    ``score`` is the name of the column of scores and ``file`` that of the saved calibrator. Both
    and the labels come from data: they are quoted as each language wants it.
    """
    if isinstance(fitted.map, Identity):
        return (Recipe("Nothing to do", "", "The scores are the probabilities: use them so."),)
    load = f"import calibrant as cal\n\ncalibrator = cal.load({file!r})\n"
    if isinstance(fitted.map, VectorMap):
        columns = f"# one column for each of {list(fitted.classes)!r}"
        return (Recipe("Python", f"{load}p = calibrator.predict_proba(scores)  {columns}"),)
    what = f"the probability of {fitted.pos_label!r}"
    python = f"{load}p = calibrator.calibrate(scores)  # {what}"
    words = ["calibrant", "apply", file, "NEW.csv", "-o", "OUT.csv", "--score", score]
    shell = " ".join(shlex.quote(word) for word in words)
    saved = f"The calibrator is the file {file}; cal.save(report.fitted, {file!r}) writes it."
    return (
        Recipe("Python", python, saved),
        Recipe("Command line", shell, "Reads and writes CSV, JSON lines and Parquet of any size."),
        _sql(fitted, score, what),
    )


def _sql(fitted: Fitted, score: str, what: str) -> Recipe:
    query = select(fitted.map, score)
    if query is None:
        return Recipe(
            "SQL",
            "",
            "This map has too many pieces for a query: apply it in one of the other ways.",
        )
    note = f"Gives {what}, the same as Python to about twelve digits. Put your table for scores."
    return Recipe("SQL", query, note)
