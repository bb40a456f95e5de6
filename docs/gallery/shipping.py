# %% [markdown]
# # Ship it: SQL, ONNX and plain Python give the same numbers
#
# After this example you can move a calibrator into a database or a scoring service, and prove that
# nothing changed on the way.

# %%
import duckdb
import numpy as np
import onnxruntime
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier

import calibrant as cal

X, y = make_classification(12_000, n_features=8, n_informative=4, flip_y=0.1, random_state=2)
model = GradientBoostingClassifier(n_estimators=80, random_state=0).fit(X[:3_000], y[:3_000])
scores = model.predict_proba(X)[:, 1]
calibrator = cal.ENIR().fit(scores[3_000:8_000], y[3_000:8_000])
new = scores[8_000:]
expected = calibrator.calibrate(new)

# %% [markdown]
# `ENIR` is a hard case: its map has many steep steps, up and down, so a small error in a score may
# become a large one in the probability.

# %%
# picture: a map of many steps that mostly rise and sometimes fall
figure = cal.diagrams.map_diagram(calibrator, title="ENIR: the map to be shipped")
figure.savefig("shipping.png")

# %% [markdown]
# ## A file
#
# JSON holds the map to the last bit. Loading it takes NumPy only.

# %%
cal.save(calibrator, "calibrator.json")
loaded = cal.load("calibrator.json").calibrate(new)
print(f"JSON: {np.abs(loaded - expected).max()} apart")

# %% [markdown]
# ## SQL
#
# One expression, to be pasted into a query or a view. It opens with a comment that says what was
# fitted, and on which scores; here is how it goes on.

# %%
sql = cal.to_sql(calibrator, dialect="duckdb", column="score", form="expression")
print(sql[sql.index("CASE") :][:400], "...")

rows = pd.DataFrame({"id": np.arange(len(new)), "score": new})
with duckdb.connect() as database:
    database.register("rows", rows)
    answer = database.sql(f"SELECT id, {sql} AS p FROM rows ORDER BY id").fetchnumpy()["p"]
print(f"DuckDB: {np.abs(answer - expected).max()} apart")

# %% [markdown]
# ## ONNX

# %%
graph = cal.to_onnx(calibrator)
session = onnxruntime.InferenceSession(
    graph.SerializeToString(), providers=["CPUExecutionProvider"]
)
(answer,) = session.run(["probability"], {"score": new})
print(f"ONNX: {np.abs(answer - expected).max()} apart")

# %% [markdown]
# ## Plain Python
#
# A module that needs no package at all, not even NumPy.

# %%
module = {}
exec(cal.to_python(calibrator, name="risk"), module)
risk = module["risk"]
answer = np.array([risk(score) for score in new])
print(f"Python: {np.abs(answer - expected).max()} apart")

# %% [markdown]
# ## The decision alone
#
# If only "act from 20 % on" matters, the whole map becomes comparisons of the raw score.

# %%
decision = cal.to_sql(calibrator, threshold=0.2)
print(decision[decision.index("CASE") :])
with duckdb.connect() as database:
    database.register("rows", rows)
    act = database.sql(f"SELECT id, {decision} AS act FROM rows ORDER BY id").fetchnumpy()["act"]
print(f"{(act == (expected >= 0.2)).sum():,} of {len(new):,} decisions are the same")

# %% [markdown]
# Read on: [shipping a calibrator](../howto/export.md), [the file format](../reference/format.md).
