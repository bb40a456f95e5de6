"""How to apply a map elsewhere: lines to copy."""

from __future__ import annotations

from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.export.sql import to_sql
from calibrant.maps import Identity, VectorMap
from calibrant.reports.report_value import Recipe
from calibrant.shell_words import quoted

#: characters of a query that a page shows; a longer one is for a file
LONGEST = 6_000


def recipes_for(fitted: Fitted, score: str, file: str) -> tuple[Recipe, ...]:
    """Python, the command line and SQL, as far as the map allows.

    ``score`` is the name of the column of scores and ``file`` that of the saved calibrator. Both
    and the labels come from data: they are quoted as each language wants it.
    """
    if fitted.map == Identity():
        return (Recipe("Nothing to do", "", "The scores are the probabilities: use them so."),)
    load = f"import calibrant as cal\n\ncalibrator = cal.load({file!r})\n"
    saved = (
        f"The calibrator is the file {file}. In Python cal.save(report.fitted, {file!r}) writes "
        f"it; on the command line, calibrant report ... --save {quoted(file)}"
    )
    if isinstance(fitted.map, VectorMap):
        return _of_classes(fitted, load, saved, file)
    what = f"the probability of {fitted.pos_label!r}"
    python = f"{load}p = calibrator.calibrate(scores)  # {what}"
    shell = f"calibrant apply {quoted(file)} NEW.csv -o OUT.csv --score {quoted(score)}"
    return (
        Recipe("Python", python, saved),
        Recipe("Command line", shell, "Reads and writes CSV, JSON lines and Parquet of any size."),
        _sql(fitted, score, file, what),
    )


def _of_classes(fitted: Fitted, load: str, saved: str, file: str) -> tuple[Recipe, ...]:
    """Python, the command line and SQL for a calibrator of several classes."""
    columns = f"# one column for each of {list(fitted.classes)!r}"
    apply = f"calibrant apply {quoted(file)} NEW.csv -o OUT.csv"
    export = f"calibrant export {quoted(file)} --to sql --table TABLE"
    named = "Name the columns of scores by --score CLASS=COLUMN if the file does not know them."
    return (
        Recipe("Python", f"{load}p = calibrator.predict_proba(scores)  {columns}", saved),
        Recipe("Command line", apply, f"Adds a column probability_CLASS for each class. {named}"),
        Recipe("SQL", export, "This command writes the query; --dialect names another database."),
    )


def _sql(fitted: Fitted, score: str, file: str, what: str) -> Recipe:
    """The query where it is short, and the command that writes it."""
    writes = f"calibrant export {quoted(file)} --to sql --score {quoted(score)}"
    columns = fitted.map.n_segment_columns
    for i in range(columns):
        writes += f" --segment {'SEGMENT' if columns == 1 else f'SEGMENT_{i + 1}'}"
    writes += " --dialect DIALECT"
    note = (
        f"Gives {what}, the same as Python to about twelve digits, and NULL where there is no "
        "finite score."
    )
    query = None if fitted.map.segments is not None else _query(fitted, score)
    if isinstance(query, InputError):
        return Recipe("SQL", "", str(query))
    if query is None:
        others = "Put duckdb, postgres, spark, bigquery or another for DIALECT."
        return Recipe("SQL", writes, f"This command writes it. {note} {others}")
    return Recipe(
        "SQL",
        query,
        f"For DuckDB. {note} Write the name of your table in place of scores. For others: {writes}",
    )


def _query(fitted: Fitted, score: str) -> str | InputError | None:
    """A query that adds the probability to a table; None where it is long, or why there is none."""
    try:
        text = to_sql(fitted, column=score, form="expression")
    except InputError as refused:
        return refused
    if len(text) > LONGEST:
        return None
    inner = text.replace("\n", "\n  ")
    return f"SELECT *,\n  {inner} AS probability\nFROM scores"
