"""SQL in dbt: the models that the page on exports writes run side by side, each with its values."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from calibrant.errors import InputError
from calibrant.export.sql import to_sql
from calibrant.export.sql.dialects import DIALECTS
from calibrant.fitting.fitted import Fitted
from calibrant.maps import Columns, Identity, Piecewise, Segmented

STEP = Piecewise.step([0.1, 0.2, 0.3], [0.0, 0.3, 0.2, 0.9])
REFERENCES = ["{{ ref('scores') }}", "{{ref('Scores_2')}}", "{{ source('raw', 'scores') }}",
              "{{ source('raw','scores') }}"]  # fmt: skip

PROJECT = """\
name: shop
version: "1.0"
profile: shop
model-paths: [models]
seed-paths: [seeds]
"""
PROFILE = """\
shop:
  target: dev
  outputs:
    dev: {type: duckdb, path: shop.duckdb, threads: 4}
"""
SOURCES = """\
sources:
  - name: raw
    schema: main
    tables: [{name: scores}]
"""


@pytest.mark.full
@pytest.mark.skipif(
    shutil.which("dbt") is None,
    reason="needs the command dbt: pip install 'dbt-core==1.9.*' 'dbt-duckdb==1.9.*'",
)
def test_the_models_of_the_page_run_and_keep_their_own_values(root, tmp_path, monkeypatch):
    """Twice, since every run finds the tables of the one before."""
    page = (root / "docs" / "howto" / "export.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    first, *_ = blocks
    section = page.split("### A view, and a dbt model\n")[1].split("\n## ")[0]
    own = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path / "models")
    names: dict[str, Any] = {}
    for block in (first, *own):
        exec(block, names)
    rows = np.linspace(0.0, 1.0, 201)
    files = {"dbt_project.yml": PROJECT, "profiles.yml": PROFILE, "models/sources.yml": SOURCES}
    files["seeds/scores.csv"] = "\n".join(["score", *map(repr, rows.tolist())])
    (tmp_path / "seeds").mkdir()
    for place, text in files.items():
        (tmp_path / place).write_text(text)
    for command in ("seed", "run", "run"):
        words = ["dbt", command, "--profiles-dir", "."]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
    wanted = {"p_c": names["c"], "p_ups": names["ups"], "p_downs": names["downs"]}
    with duckdb.connect(tmp_path / "shop.duckdb") as database:
        for model, calibrator in wanted.items():
            found = database.execute(f"SELECT {model} FROM {model} ORDER BY score").fetchall()
            values = calibrator.calibrate(rows)
            np.testing.assert_allclose([p for (p,) in found], values, rtol=0, atol=1e-12)
    assert sorted(path.name for path in Path().glob("p_*.sql")) == sorted(
        f"{m}.sql" for m in wanted
    )


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("table", REFERENCES)
def test_references_are_written_as_they_are(dialect, table):
    for sql in (
        to_sql(STEP, dialect=dialect, form="lookup", table=table),
        to_sql(Columns((STEP, STEP)), dialect=dialect, column=["a", "b"], table=table),
    ):
        assert f"FROM {table} AS r" in sql.statements[-1]
        assert sql.count("{{") == 1


@pytest.mark.parametrize(
    "table",
    ["{{ ref('a b') }}", "{{ ref('ü') }}", "{{ ref(\"a\") }}", "{{ ref('a', 'b') }}", "{{ x }}",
     "{{ ref('a') }} ", "x{{ ref('a') }}", "{{ ref('a') }}; DROP TABLE t", "{{ source('a') }}",
     "{{ ref('a') }}\n", "{{ ref('a')\n}}", "{% raw %}", "{{ env_var('X') }}", "{{ ref(a) }}",
     "{{ source('a', 'b', 'c') }}", "{{ ref('a') }}.t", "{{- ref('a') }}"],
)  # fmt: skip
def test_nothing_else_of_that_kind_is(table):
    try:
        query = to_sql(STEP, form="lookup", table=table).statements[-1]
    except InputError:  # as any name with a line break
        assert "\n" in table
    else:
        assert f"FROM {table}" not in query
        assert re.search(r"FROM \"", query)


@pytest.mark.parametrize("evil", ["{{ env_var('X') }}", "{% raw %}", "{# x"])
def test_what_dbt_would_read_is_no_part_of_a_model(evil):
    refs = {"table": "{{ ref('scores') }}", "form": "lookup"}
    with pytest.raises(InputError, match="dbt would read"):
        to_sql(Segmented(STEP, (evil,), (Identity(),)), segment="part", **refs)
    with pytest.raises(InputError, match="dbt would read"):
        to_sql(STEP, column=evil, **refs)
    with pytest.raises(InputError, match="dbt would read"):
        to_sql(STEP, into=evil, table=refs["table"], view="v")
    for asked in ({"column": refs["table"]}, {"into": refs["table"]}, {"keep": [refs["table"]]}):
        with pytest.raises(InputError, match="dbt would read"):
            to_sql(STEP, **asked, **refs)
    fitted = Fitted(STEP, (evil, "z"), evil, evil)
    for asked in ({}, refs):
        assert evil[:2] not in to_sql(fitted, **asked).replace(refs["table"], "")


@pytest.mark.parametrize(
    ("table", "lookup"),
    [("{{ ref('rows') }}", "rows"), ("{{ ref('ROWS_2') }}", "main.rows"),
     ("{{ source('raw', 'rows') }}", "raw.rows"), ("{{ source('raw', 'rows') }}", "rows")],
)  # fmt: skip
def test_a_lookup_never_replaces_the_rows_of_a_reference(table, lookup):
    with pytest.raises(InputError, match="must be another one than that of the rows"):
        to_sql(STEP, form="lookup", table=table, lookup=lookup)
    assert to_sql(STEP, form="lookup", table="{{ source('raw', 'rows') }}", lookup="mart.rows")
