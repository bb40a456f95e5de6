# %% [markdown]
# # Three million rows that are never loaded
#
# After this example you can fit, apply and measure a calibrator on files of any size, with Polars
# or DuckDB.
#
# The files here are small enough to be made in seconds. Nothing in the code depends on that: the
# rows stay in the files, and only sums come into memory.

# %%
import duckdb
import numpy as np
import polars as pl

import calibrant as cal

rng = np.random.default_rng(0)
for month in (1, 2, 3):
    z = rng.normal(-2, 1.5, 1_000_000)
    pl.DataFrame(
        {
            "score": 1 / (1 + np.exp(-1.8 * z)),  # a model that is too sure
            "churned": rng.random(1_000_000) < 1 / (1 + np.exp(-z)),
            "customer": np.arange(1_000_000) + 1_000_000 * month,
        }
    ).write_parquet(f"month-{month}.parquet")

# %% [markdown]
# ## Fit
#
# A calibrator needs to know how many rows of each class there are at each score. Polars counts them
# while it reads the files. Where there are more than a million different scores, those that are
# very close share a cell. What comes back is a small table, which knows how far any score was
# moved.

# %%
old = pl.scan_parquet("month-[12].parquet")
table = cal.score_table(old, score="score", label="churned")
print(f"{table.total:,.0f} rows became {len(table.scores):,} cells of scores")
print(f"{table.scores.nbytes / 1e6:.1f} MB; no score was moved by more than {table.error:.1e}")

calibrator = cal.BLS().fit_table(table)

# %% [markdown]
# ## Apply
#
# The frame stays lazy: the map becomes an expression, and rows flow from file to file.

# %%
new = pl.scan_parquet("month-3.parquet")
applied = cal.add_probabilities(calibrator, new, score="score", into="probability")
print(type(applied).__name__)
applied.sink_parquet("calibrated.parquet")
print(pl.read_parquet("calibrated.parquet", n_rows=3))

# %% [markdown]
# ## Measure
#
# The same on DuckDB, which reads the file that Polars wrote. Sums over rows are exact.

# %%
rows = duckdb.read_parquet("calibrated.parquet")
measures = ["log_loss", "ece", "auc", "observed_expected"]
print(cal.evaluate(rows, "probability", label="churned", raw="score", measures=measures))

# %% [markdown]
# ## Draw
#
# A diagram needs no rows either: a table for each prediction is enough.

# %%
# picture: reliability of a million rows; the raw scores are too sure, the calibrated ones lie on
# the diagonal
tables = {
    name: cal.score_table(rows, score=name, label="churned") for name in ("score", "probability")
}
figure = cal.reliability_diagram({"raw": tables["score"], "calibrated": tables["probability"]})
figure.savefig("larger_than_memory.png")

# %% [markdown]
# Read on: [larger than memory](../howto/engines.md), also for Spark and Ibis, and [the command
# line](../reference/cli.md), which does all this without Python.
