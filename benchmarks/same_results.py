"""Whether a change of the code changes any result: fits, files, exports, tests, pages, commands.

``python -m benchmarks.same_results FOLDER`` runs the same calls in the checkout in FOLDER (before)
and in this one (after), and prints which results differ. Numbers are compared bit by bit, texts and
files byte by byte, errors by type and words. It ends with 1 if anything differs.
``--only fits`` takes some of the chapters, ``--show`` prints both sides of what differs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import difflib
import hashlib
import io
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent.parent
Results = Iterator[tuple[str, Callable[[], Any]]]

#: what no two runs have in common: times, versions, folders, addresses of objects
CHANGING = [
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(\+00:00|Z| UTC)?"), "<time>"),
    (re.compile(r"\b(1 )?(January|February|March|April|May|June|July|August|September|October|"
                r"November|December)( \d+)?,? \d{4}\b"), "<month>"),
    (re.compile(r"(?<=\d) [A-Z][a-z]+ 20\d\d\b"), " <month>"),
    (re.compile(r"\b20\d\d-\d\d-\d\d\b"), "<day>"),
    (re.compile(r"0x[0-9a-f]{6,}"), "<address>"),
    (re.compile(r"\b\d+(\.\d+)? (ms|s|seconds)\b"), "<seconds>"),
    (re.compile(r"calibrant\.[a-z_.]+\.(?=[A-Z])"), "calibrant."),  # the module of a class may move
]  # fmt: skip


# --- what a result is, as text --------------------------------------------------------------------


def text_of(value: Any) -> str:
    """A value as a text that is the same for the same bits only."""
    import numpy as np

    if value is None or isinstance(value, bool | int | np.bool_ | np.integer):
        return str(value)
    if isinstance(value, float | np.floating):
        return float(value).hex()
    if isinstance(value, str):
        for pattern, word in CHANGING:
            value = pattern.sub(word, value)
        return str(value)
    if isinstance(value, bytes):
        return f"{len(value)} bytes {hashlib.sha256(value).hexdigest()}"
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "fiub":
            return f"{value.dtype}{value.shape} {text_of(np.ascontiguousarray(value).tobytes())}"
        return f"{value.dtype}{value.shape} {text_of(value.tolist())}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{text_of(k)}: {text_of(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(text_of, value)) + "]"
    if isinstance(value, set | frozenset):
        return text_of(sorted(map(text_of, value)))
    is_record = dataclasses.is_dataclass(value) and not hasattr(value, "get_params")
    if is_record and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.name != "seconds"]
        fields = {name: getattr(value, name) for name in names}
        return f"{type(value).__name__}{text_of(fields)}"
    if hasattr(value, "savefig"):
        return text_of(picture(value))
    return text_of(str(value))


def picture(figure: Any) -> bytes:
    """A figure's pixels."""
    import matplotlib.pyplot as plt

    held = io.BytesIO()
    figure.savefig(held, format="png", dpi=60, metadata={"Software": None})
    plt.close(figure)
    return held.getvalue()


def outcome(work: Callable[[], Any]) -> str:
    """What a call gives, with its warnings; or its error."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            told = text_of(work())
        except Exception as error:
            told = f"{type(error).__name__}: {text_of(str(error))}"
    ours = [one for one in heard if type(one.message).__module__.startswith("calibrant")]
    said = [f"{type(one.message).__name__}: {text_of(str(one.message))}" for one in ours]
    return "\n".join([told, *said])


# --- rows -----------------------------------------------------------------------------------------


class Rows:
    """The rows of all chapters, drawn once."""

    def __init__(self) -> None:
        import numpy as np

        draw = np.random.default_rng(7)
        self.s = draw.beta(1, 2, 1_200)
        self.y = (draw.random(1_200) < self.s**1.6).astype(int)
        self.words = np.where(self.y == 1, "yes", "no")
        self.weight = draw.integers(0, 4, 1_200).astype(float)
        self.margins = 3 * np.log(self.s / (1 - self.s))
        self.tied = np.round(self.s, 1)
        self.segment = np.array(["de", "fr", "it"])[draw.integers(0, 3, 1_200)]
        self.product = np.array(["a", "b"])[draw.integers(0, 2, 1_200)]
        self.X = np.column_stack([draw.normal(size=(1_200, 3)), draw.integers(0, 3, 1_200)])
        self.new = np.concatenate([draw.random(60), [0.0, 1.0, 0.5, 1e-9]])
        self.z = 2 * draw.normal(size=(900, 4))
        self.four = (self.z / 2 + draw.gumbel(size=self.z.shape)).argmax(1)
        self.p4 = np.exp(self.z) / np.exp(self.z).sum(1, keepdims=True)
        self.names4 = np.array(["low", "mid", "high", "top"])[self.four]
        self.labels3 = (draw.random((900, 3)) < self.p4[:, :3]).astype(int)


# --- chapters -------------------------------------------------------------------------------------

#: options of calibrators of one score, beside the defaults
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "ABB": [{"variant": "text"}, {"lambda_": 1.0}, {"levels": (0.9,)}],
    "BBQ": [{"models": "all"}],
    "BLS": [{"monotone": False}, {"levels": (0.9,)}, {"power": 1.0}, {"moderation": 0.0}],
    "Beta": [{"parameters": "am"}, {"parameters": "ab"}],
    "ELiTE": [{"degree": 0}, {"degree": 2}, {"falls": "priced"}, {"models": "best"},
              {"criterion": "bic"}],
    "ENIR": [{"variant": "authors"}, {"models": "best"}, {"interpolation": "linear"}],
    "Histogram": [{"bins": "auto"}, {"binning": "width"}, {"smoothing": "laplace"}, {"bins": 5}],
    "Isotonic": [{"interpolation": "linear"}, {"interpolation": "centred"}, {"cut": "left"},
                 {"direction": "auto"}, {"smoothing": "laplace"}, {"y_min": 0.1, "y_max": 0.9}],
    "Platt": [{"scale": "raw"}],
    "Quadratic": [{"monotone": True}, {"shrinkage": "identity"}, {"shrinkage": 1.0}],
    "Rescale": [{"formula": "minmax"}, {"formula": "symmetric"}],
    "SBB": [{"lambda_": 1.0}],
    "Spline": [{"monotone": False}],
    "VennAbers": [{"cv": 5}],
}  # fmt: skip
ONE_SCORE = ("ABB", "BBQ", "BLS", "Beta", "ELiTE", "ENIR", "Histogram", "Isotonic",
             "LogisticCorrection", "Platt", "Quadratic", "Rescale", "SBB", "Spline",
             "Uncalibrated", "VennAbers", "Temperature")  # fmt: skip
ALL_SCORES = ("Temperature", "VectorScaling", "MatrixScaling", "Dirichlet", "StructuredScaling",
              "EnsembleTemperature", "TopLabelCalibrator", "AutoCalibrator")  # fmt: skip
DIALECTS = ("duckdb", "postgres", "spark", "bigquery", "sqlite", "tsql")


def kept(cal: Any, name: str, fit: Callable[[], Any], new: Any, **beside: Any) -> Results:
    """What is asked of a fitted calibrator: predictions, texts, exports; the error if it fails."""
    import numpy as np

    try:
        fitted = fit()
    except Exception as error:
        yield name, lambda error=error: f"{type(error).__name__}: {error}"
        return
    yield f"{name} proba", lambda: fitted.predict_proba(new, **beside)
    yield f"{name} calibrate", lambda: fitted.calibrate(new, **beside)
    yield f"{name} predict", lambda: fitted.predict(new, **beside)
    yield f"{name} file", lambda: saved(cal, fitted)
    yield f"{name} read again", lambda: read_again(cal, fitted).predict_proba(new, **beside)
    yield f"{name} explain", lambda: fitted.explain() if hasattr(fitted, "explain") else ""
    yield f"{name} repr", lambda: repr(fitted)
    for more in ("leaderboard_", "advice_"):
        yield f"{name} {more}", lambda more=more: getattr(fitted, more, None)
    if hasattr(fitted, "score_at"):
        yield f"{name} score at", lambda: fitted.score_at(0.3)
    yield f"{name} outside", lambda: fitted.calibrate([-40.0, 1.7, 40.0], on_range="clip")
    columns: dict[str, Any] = {}
    if "segments" in beside:
        columns["segment"] = "g" if np.ndim(beside["segments"]) == 1 else ["g", "h"]
    if np.ndim(new) > 1:
        columns["column"] = [f"p{at}" for at in range(np.shape(new)[1])]
    yield from exports(cal, name, fitted, **columns)


def exports(cal: Any, name: str, fitted: Any, **columns: Any) -> Results:
    for dialect in DIALECTS[: 6 if "default" in name or "BLS({})" in name else 2]:
        for form in ("auto", "expression", "lookup"):
            yield (
                f"{name} sql {dialect} {form}",
                lambda dialect=dialect, form=form: str(
                    cal.to_sql(fitted, dialect=dialect, form=form, **columns)
                ),
            )
    yield f"{name} python", lambda: cal.to_python(fitted)
    yield f"{name} onnx", lambda: onnx_graph(cal.to_onnx(fitted))
    yield f"{name} onnx of 32 bits", lambda: onnx_graph(cal.to_onnx(fitted, float=32))


def onnx_graph(model: Any) -> bytes:
    import onnx

    if isinstance(model, bytes):
        model = onnx.load_model_from_string(model)
    return bytes(model.graph.SerializeToString(deterministic=True))


def saved(cal: Any, fitted: Any) -> str:
    """The files of a calibrator, without the time of its fit and the version that wrote it."""
    with tempfile.TemporaryDirectory() as folder:
        cal.save(fitted, Path(folder) / "c.json")
        held = []
        for file in sorted(Path(folder).iterdir()):
            told = file.read_bytes()
            held.append(told.decode() if file.suffix == ".json" else text_of(told))
        return re.sub(r'"(version|calibrant)": "[^"]*"', "", "\n".join(held))


def read_again(cal: Any, fitted: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        cal.save(fitted, Path(folder) / "c.json")
        return cal.load(Path(folder) / "c.json")


def fits(cal: Any, rows: Rows) -> Results:
    """Calibrators of one score, on rows of all kinds."""
    kinds = {
        "probabilities": (rows.s[:500], rows.y[:500], None, rows.new),
        "margins": (rows.margins[:500], rows.y[:500], None, 8 * (rows.new - 0.5)),
        "ties, weights, words": (rows.tied, rows.words, rows.weight, rows.new),
        "few rows": (rows.s[:25], rows.words[:25], None, rows.new),
    }
    for name in ONE_SCORE:
        for options, (kind, (s, y, w, new)) in itertools.product(
            [{}, *OPTIONS.get(name, [])], kinds.items()
        ):
            yield from kept(
                cal,
                f"{name}({options}) of {kind}",
                lambda name=name, options=options, given=(s, y, w): getattr(cal, name)(
                    **options
                ).fit(*given),
                new,
            )


def choices(cal: Any, rows: Rows) -> Results:
    """The automatic choice, and what it says."""
    import numpy as np

    draw = np.random.default_rng(3)
    many = draw.random(12_000)
    y_many = (draw.random(12_000) < many**2).astype(int)
    right = (draw.random(1_200) < rows.s).astype(int)
    groups = np.arange(1_200) // 4
    odd = np.concatenate([rows.s[:400], [1.7]])
    cases: dict[str, Any] = {
        "default": ({}, (rows.s, rows.y), {}),
        "weights": ({}, (rows.tied, rows.words, rows.weight), {}),
        "another seed": ({"random_state": 1}, (rows.s, rows.y), {}),
        "three folds": ({"cv": 3}, (rows.s, rows.y), {}),
        "right scores": ({}, (rows.s, right), {}),
        "margins": ({}, (rows.margins, rows.y), {}),
        "many rows": ({}, (many, y_many), {}),
        "few rows": ({}, (rows.s[:40], rows.y[:40]), {}),
        "wrong way": ({}, (1000 * (1 - rows.s), rows.y), {}),
        "groups": ({}, (rows.s, rows.y), {"groups": groups}),
        "candidates": ({"candidates": ["platt", "isotonic", "bls"]}, (rows.s, rows.y), {}),
        "features": ({}, (rows.s, rows.y), {"features": rows.X}),
        "one score of 1.7": ({}, (odd, np.append(rows.y[:400], 1)), {}),
    }
    for name, (options, given, beside) in cases.items():
        seen = {"features": rows.X[: len(rows.new)]} if "features" in beside else {}
        fit = lambda options=options, given=given, beside=beside: cal.AutoCalibrator(  # noqa: E731
            **options
        ).fit(*given, **beside)
        yield from kept(cal, f"auto {name}", fit, rows.new, **seen)
    for seed in (0, 1):
        fitted = cal.AutoCalibrator(random_state=seed).fit(rows.s, rows.y)
        yield f"advice {seed}", lambda fitted=fitted: cal.advise(rows.s, rows.y, fitted)
    yield "advice", lambda: cal.advise(rows.s, rows.y)
    yield "advice of many rows", lambda: cal.advise(many, y_many)
    yield (
        "advice by segment",
        lambda: cal.advise(rows.s, rows.y, cal.Platt().fit(rows.s, rows.y), segments=rows.segment),
    )
    table = cal.ScoreTable.from_arrays(rows.s, rows.y)
    yield "auto of a table", lambda: cal.AutoCalibrator().fit_table(table).calibrate(rows.new)


def several(cal: Any, rows: Rows) -> Results:
    """Several classes and labels."""
    new = rows.z[:40]
    for name in ALL_SCORES:
        for kind, given, seen in (
            ("logits", rows.z, new),
            ("probabilities", rows.p4, rows.p4[:40]),
        ):
            fit = lambda name=name, given=given: getattr(cal, name)(  # noqa: E731
                *(["isotonic"] if name == "TopLabelCalibrator" else [])
            ).fit(given, rows.four)
            yield from kept(cal, f"{name} of {kind}", fit, seen)
    for code, combine, inner in itertools.product(
        ("one_vs_rest", "all_pairs", "ecoc"),
        ("auto", "normalize", "pairwise", "coupling", "least_squares"),
        ("platt", "isotonic"),
    ):
        fit = lambda code=code, combine=combine, inner=inner: cal.CodedCalibrator(  # noqa: E731
            inner, code=code, combine=combine
        ).fit(rows.z, rows.four)
        yield from kept(cal, f"coded {code} {combine} {inner}", fit, new)
    labels = cal.MultiLabelCalibrator("isotonic").fit(rows.p4[:, :3], rows.labels3)
    yield "labels", lambda: labels.predict_proba(rows.p4[:40, :3])
    yield from exports(cal, "labels", labels, column=["a", "b", "c"])
    from sklearn.linear_model import LogisticRegression

    for code in ("one_vs_rest", "all_pairs"):
        model = cal.CodedClassifier(LogisticRegression(), code=code, calibrator="platt", cv=3)
        model.fit(rows.z, rows.names4)
        yield f"coded classifier {code}", lambda model=model: model.predict_proba(new)


def beside(cal: Any, rows: Rows) -> Results:
    """Segments, features, neighbours, intervals."""
    import numpy as np

    new, X, seg = rows.new, rows.X, rows.segment
    few = len(new)
    two = np.column_stack([seg, rows.product])
    low, high = np.clip(rows.s - 0.1, 0, 1), np.clip(rows.s + 0.1, 0, 1)
    at = {"lower": np.clip(new - 0.1, 0, 1), "upper": np.clip(new + 0.1, 0, 1)}

    def fits(maker: Callable[..., Any], options: Any, given: Any, **more: Any) -> Any:
        return lambda: maker(**options).fit(*given, **more)

    for options in ({}, {"shrinkage": 0.0}, {"shrinkage": 20.0}, {"min_rows": 450},
                    *({"calibrator": name} for name in ("isotonic", "bls", "platt"))):  # fmt: skip
        for name, segments in (("one column", seg), ("two columns", two)):
            fit = fits(cal.SegmentedCalibrator, options, (rows.s, rows.words), segments=segments)
            label = f"segments of {name} {options}"
            yield from kept(cal, label, fit, new, segments=segments[:few])
    for options in ({}, {"gate": False}, {"gate": False, "rounds": 5}):
        fit = fits(cal.FeatureCalibrator, options, (rows.s, rows.y), features=X)
        yield from kept(cal, f"features {options}", fit, new, features=X[:few])
    for options in ({}, {"gate": False}, {"gate": False, "k": "auto"},
                    {"gate": False, "neighbour_weights": "distance"}):  # fmt: skip
        fit = fits(cal.SimilarityBinning, options, (rows.s[:500], rows.y[:500]), features=X[:500])
        yield from kept(cal, f"neighbours {options}", fit, new, features=X[:few])
    fit = fits(cal.SimilarityBinning, {"gate": False}, (rows.p4[:400], rows.four[:400]),
               features=X[:400])  # fmt: skip
    yield from kept(cal, "neighbours of classes", fit, rows.p4[:40], features=X[:40])
    for options in ({}, {"gate": False}, {"gate": False, "smoothing": "laplace"}):
        fit = fits(cal.ACP, options, (rows.s, rows.y), lower=low, upper=high)
        yield from kept(cal, f"intervals {options}", fit, new, **at)


def models(cal: Any, rows: Rows) -> Results:
    """Calibrators around models."""
    import numpy as np
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    X, y = rows.X, rows.words
    for calibrator in (None, "isotonic", "platt", cal.SimilarityBinning(), cal.ACP(),
                       cal.FeatureCalibrator()):  # fmt: skip
        for cv, ensemble in ((3, False), (3, True), ("prefit", False), (0.3, False)):
            label = f"model {calibrator} cv={cv} ensemble={ensemble}"
            model = GaussianNB().fit(X[:600], y[:600]) if cv == "prefit" else GaussianNB()
            try:
                around = cal.CalibratedClassifier(
                    model, calibrator, cv=cv, ensemble=ensemble, random_state=0
                )
                around.fit(X[600:], y[600:])
            except Exception as error:
                yield label, lambda error=error: f"{type(error).__name__}: {error}"
                continue
            yield label, lambda around=around: around.predict_proba(X[:50])
            yield f"{label} file", lambda around=around: saved(cal, around)
    forest = RandomForestClassifier(20, random_state=0).fit(X[:600], y[:600])
    yield (
        "interval of a forest",
        lambda: cal.prediction_interval(forest, X[600:650], train=(X[:600], y[:600])),
    )
    line = LogisticRegression().fit(X[:600], y[:600])
    yield (
        "interval of a line",
        lambda: cal.prediction_interval(line, X[600:650], train=(X[:600], y[:600])),
    )
    boosted = cal.boosting.AdaBoost(n_estimators=20).fit(X, rows.y)
    yield "boosting", lambda: boosted.predict_proba(X[:50])
    yield "boosting score", lambda: cal.boosting.boosting_score(boosted, X[:50])
    by_segment = cal.CalibratedClassifier(GaussianNB(), segments=3, random_state=0)
    yield "model by segment", lambda: by_segment.fit(X, y).predict_proba(X[:50])
    four = cal.CalibratedClassifier(GaussianNB(), random_state=0)
    yield "model of classes", lambda: four.fit(rows.z, rows.four).predict_proba(rows.z[:50])
    soft = np.clip(rows.s, 0.05, 0.95)
    yield "soft labels", lambda: cal.Platt().fit(rows.s, soft).calibrate(rows.new)


def measures(cal: Any, rows: Rows) -> Results:
    """Measures, tests, evaluations; in memory and lazily."""
    import narwhals as nw
    import numpy as np
    import polars as pl

    y, p, w = rows.y, rows.s, rows.weight
    functions = cal.metrics
    for name in sorted(dir(functions)):
        work = getattr(functions, name)
        rest = ("evaluate", "loss_difference", "multicalibration", "multilabel_measures")
        if name[0] in "_ABCDEFGHIJKLMNOPQRSTUVWXYZ" or name in rest or not callable(work):
            continue
        extra = {"net_benefit": {"threshold": 0.2}, "profit": {"benefit": 2.0, "cost": 1.0}}
        more = extra.get(name, {})
        yield f"{name}", lambda work=work, more=more: work(y, p, **more)
        yield f"{name} weights", lambda work=work, more=more: work(y, p, sample_weight=w, **more)
        yield f"{name} classes", lambda work=work, more=more: work(rows.four, rows.p4, **more)
    yield "loss difference", lambda: functions.loss_difference(y, p, p**1.6)
    yield "groups", lambda: functions.multicalibration(y, p, features=rows.X, replicates=100)
    yield "labels", lambda: functions.multilabel_measures(rows.labels3, rows.p4[:, :3])
    for name, work in {
        "evaluate": lambda **more: cal.evaluate(y, p, **more),
        "evaluate raw": lambda **more: cal.evaluate(y, p**1.6, raw=p, **more),
        "evaluate classes": lambda **more: cal.evaluate(rows.four, rows.p4, **more),
    }.items():
        for options in ({}, {"level": None}, {"bins": 5}):
            held = lambda work=work, options=options: work(**options)  # noqa: E731
            yield f"{name} {options}", lambda held=held: str(held())
            yield f"{name} {options} as values", lambda held=held: held().to_dict()
            yield f"{name} {options} as a page", lambda held=held: held()._repr_html_()
    frame = pl.DataFrame({"y": y, "p": p, "w": w, "g": rows.segment})
    big = np.random.default_rng(1).random(1_200_000)
    large = pl.DataFrame({"y": (big**2 > np.roll(big, 1)).astype(int), "p": big}).lazy()
    yield "evaluate lazy", lambda: str(cal.evaluate(frame.lazy(), "p", label="y"))
    yield (
        "evaluate beyond a million scores",
        lambda: str(cal.evaluate(large, "p", label="y", level=None)),
    )
    yield "table", lambda: cal.score_table(frame.lazy(), score="p", label="y", weight="w")
    yield "tables", lambda: cal.segment_tables(frame.lazy(), score="p", label="y", segment="g")
    yield "isotonic lazy", lambda: cal.fit_isotonic(frame.lazy(), score="p", label="y").map
    for name in ("Isotonic", "BLS", "Platt", "VennAbers"):
        fitted = getattr(cal, name)().fit(p, y)
        yield (
            f"add {name}",
            lambda fitted=fitted: (
                nw.from_native(cal.add_probabilities(fitted, frame.lazy(), score="p"))
                .collect()
                .to_dict(as_series=False)
            ),
        )
    yield from _duckdb(cal, rows)


def _duckdb(cal: Any, rows: Rows) -> Results:
    import duckdb
    import pandas as pd

    door = duckdb.connect()
    frame = pd.DataFrame({"y": rows.y, "p": rows.s, "g": rows.segment, "i": range(len(rows.y))})
    door.register("frame", frame)
    door.execute("create table rows as select * from frame")
    relation = door.table("rows")
    yield "evaluate duckdb", lambda: str(cal.evaluate(relation, "p", label="y", level=None))
    for name in ("Isotonic", "BLS", "Beta"):
        fitted = getattr(cal, name)().fit(rows.s, rows.y)
        yield (
            f"add in duckdb {name}",
            lambda fitted=fitted: sorted(
                cal.add_probabilities(fitted, relation, score="p").fetchall(), key=lambda r: r[3]
            ),
        )
    segments = cal.SegmentedCalibrator().fit(rows.s, rows.y, segments=rows.segment)
    yield (
        "add by segment",
        lambda: sorted(
            cal.add_probabilities(segments, relation, score="p", segment="g").fetchall(),
            key=lambda r: r[3],
        ),
    )


def later(cal: Any, rows: Rows) -> Results:
    """Other base rates, drift, the monitor, grades, comparisons, thresholds."""
    import numpy as np

    fitted = cal.BLS().fit(rows.s, rows.y)
    steps = cal.Isotonic().fit(rows.s, rows.y)
    for name, one in (("smooth", fitted), ("steps", steps)):
        table = cal.ScoreTable.from_arrays(rows.s[:600] ** 2, rows.y[:600])
        for scale in ("auto", "logit", "raw"):
            yield (
                f"drift {name} {scale}",
                lambda one=one, table=table, scale=scale: cal.check_drift(one, table, scale=scale),
            )
        yield (
            f"other rate {name}",
            lambda one=one: cal.adjust_prior(one, train_rate=0.4, target_rate=0.1).calibrate(
                rows.new
            ),
        )
        yield f"cost {name}", lambda one=one: cal.best_threshold(one, cost_fp=1, cost_fn=5)
    yield "rate", lambda: cal.estimate_rate(fitted.calibrate(rows.s), train_rate=0.3)
    yield "rates", lambda: cal.estimate_rates(rows.p4, train_rate=[0.25] * 4)
    watched = cal.Monitor(fitted)
    for day in range(6):
        at = slice(200 * day, 200 * day + 200)
        watched.update(rows.y[at], rows.s[at] ** (1 + day / 4))
    yield "monitor", lambda: str(watched)
    yield "monitor reading", lambda: watched.reading
    yield "monitor page", lambda: cal.monitor_report(watched).to_html()
    yield "monitor picture", lambda: cal.diagrams.monitor_diagram(watched)
    yield (
        "drift of classes",
        lambda: cal.monitor.check_class_drift(
            cal.Temperature().fit(rows.z, rows.four), rows.z[:400], rows.four[:400]
        ),
    )
    scores = np.random.default_rng(5).random((12, 5)).round(2)
    for name in ("average_ranks", "compare", "friedman", "nemenyi", "wilcoxon_pairs"):
        work = getattr(cal.compare, name)
        yield f"compare {name}", lambda work=work: str(work(scores, larger_is_better=True))
    yield "compare gain", lambda: cal.compare.relative_gain(scores[:, 0], scores[:, 1])


def pictures(cal: Any, rows: Rows) -> Results:
    """Diagrams and pages."""
    import matplotlib as mpl

    mpl.use("Agg")
    y, p = rows.y, rows.s
    fitted = cal.AutoCalibrator().fit(p, y)
    seen = cal.diagrams
    for curve in ("binned", "isotonic", "smooth"):
        yield f"reliability {curve}", lambda curve=curve: cal.reliability_diagram(y, p, curve=curve)
    yield "reliability raw", lambda: cal.reliability_diagram(y, p**1.6, raw=p)
    yield "reliability segments", lambda: cal.reliability_diagram(y, p, segments=rows.segment)
    yield "classes", lambda: seen.class_diagram(rows.four, rows.p4)
    yield "map", lambda: seen.map_diagram(fitted)
    yield "map on odds", lambda: seen.map_diagram(fitted, axes="logit")
    yield "decision", lambda: seen.decision_diagram(seen.decision_curve(y, p))
    yield "panels", lambda: seen.panel_diagram(seen.reliability_panels(y, {"a": p, "b": p**1.6}))
    yield (
        "learning",
        lambda: seen.learning_diagram(
            cal.learning_curve(
                {"platt": cal.Platt(), "steps": cal.Isotonic()},
                p,
                y,
                sizes=(64, 128),
                repeats=3,
                random_state=0,
            )
        ),
    )
    yield (
        "groups",
        lambda: seen.group_diagram(
            cal.metrics.multicalibration(y, p, features=rows.X, replicates=100)
        ),
    )
    for name, given in (("two classes", (p, y)), ("several classes", (rows.p4, rows.four))):
        page = None

        def report(given: Any = given) -> Any:
            return cal.calibration_report(*given)

        yield f"report {name}", lambda report=report: str(report())
        yield f"report {name} page", lambda report=report: report().to_html()
        del page
    yield (
        "report by segment",
        lambda: cal.calibration_report(p, y, segments=rows.segment).to_html(),
    )


def errors(cal: Any, rows: Rows) -> Results:
    """What is refused, and in which words."""
    import numpy as np

    s, y = rows.s[:50], rows.y[:50]
    bad: dict[str, Any] = {
        "nan": (np.append(s, np.nan), np.append(y, 1)),
        "text": (["a", "b"], [0, 1]),
        "lengths": (s, y[:-1]),
        "one class": (s, np.zeros(50)),
        "three classes": (s, np.arange(50) % 3),
        "empty": ([], []),
        "swapped": (y, s),
        "two columns": (rows.z[:50, :2], y),
        "infinite": (np.append(s, np.inf), np.append(y, 1)),
        "weights": (s, y, -np.ones(50)),
        "null labels": (s, [None, *y[1:].tolist()]),
    }
    for name in (*ONE_SCORE, "AutoCalibrator"):
        for case, given in bad.items():
            yield (
                f"{name} {case}",
                lambda name=name, given=given: getattr(cal, name)().fit(*given).calibrate([0.3]),
            )
    for name in ALL_SCORES:
        for case, given in {
            "nan": (np.full((4, 3), np.nan), [0, 1, 2, 0]),
            "labels": (rows.z[:50], np.arange(50) % 6),
            "one column": (rows.s[:50, None], y),
            "lengths": (rows.z[:50], rows.four[:40]),
        }.items():
            yield (
                f"{name} {case}",
                lambda name=name, given=given: getattr(cal, name)().fit(*given).calibrate(given[0]),
            )
    fitted = cal.Platt().fit(rows.s, rows.y)
    yield "outside", lambda: fitted.calibrate([1.7])
    yield "not fitted", lambda: cal.Platt().calibrate([0.5])
    yield "unknown name", lambda: cal.evalute
    yield "unknown parameter", lambda: cal.Platt(scale="log").fit(s, y)
    yield "file", lambda: cal.load(HERE / "README.md")


def commands(cal: Any, rows: Rows) -> Results:
    """The command line: what it prints, what it writes, how it ends."""
    import pandas as pd

    folder = Path(tempfile.mkdtemp())
    frame = pd.DataFrame(
        {"id": range(1_200), "score": rows.s, "label": rows.words, "country": rows.segment,
         "x": rows.X[:, 0], "n": rows.X[:, 3].astype(int)}
    )  # fmt: skip
    frame.to_csv(folder / "rows.csv", index=False)
    frame.head(400).to_parquet(folder / "rows.parquet")
    frame.head(300).to_json(folder / "rows.jsonl", orient="records", lines=True)
    frame.head(100).to_csv(folder / "german.csv", index=False, sep=";", decimal=",")
    frame.drop(columns="label").head(200).to_csv(folder / "new.csv", index=False)
    wide = pd.DataFrame(rows.p4, columns=["p_low", "p_mid", "p_high", "p_top"])
    wide["kind"] = rows.names4
    wide.to_csv(folder / "kinds.csv", index=False)
    for words in """
        fit rows.csv -o c.json
        fit rows.csv --method isotonic -o i.json
        fit rows.csv --method platt --param scale=raw -o p.json --json
        fit rows.parquet -s score -l label --method beta -o b.json
        fit german.csv --method bls -o g.json
        fit rows.csv -s score -l label --segment country -o s.json
        fit rows.csv -s score -l label --features x,n -o f.json
        fit kinds.csv --score p_low,p_mid,p_high,p_top --label kind -o k.json
        fit kinds.csv --score p_low,p_mid,p_high,p_top --label kind -m temperature -o t.json
        fit rows.csv --label nothing -o n.json
        apply c.json new.csv -o out.csv
        apply i.json new.csv -o out.parquet
        apply s.json new.csv -o by.csv
        apply f.json new.csv -o with.csv
        apply k.json kinds.csv -o kinds-out.csv
        apply c.json rows.jsonl -o out.jsonl
        apply c.json rows.csv -o both.csv
        apply c.json new.csv -o -
        apply c.json kinds.csv -o no.csv
        evaluate both.csv --prob probability --label label --raw score
        evaluate both.csv --prob probability --label label --json
        evaluate rows.csv -p score -l label --segment country
        evaluate kinds.csv -p p_low,p_mid,p_high,p_top -l kind
        compare rows.csv -s score -l label --method platt --method bls
        compare kinds.csv -s p_low,p_mid,p_high,p_top -l kind --method temperature
        check rows.csv -c c.json -l label
        check rows.csv -c c.json -l label --json
        check kinds.csv -c t.json -l kind
        monitor state.json rows.csv -c c.json -l label
        monitor state.json rows.csv -c c.json -l label --json
        export c.json --to sql
        export c.json --to sql --dialect postgres --form lookup
        export i.json --to sql --table t --view v
        export s.json --to sql
        export k.json --to python
        export c.json --to python --threshold 0.2
        export c.json --to onnx -o c.onnx
        export c.json --to json
        plot both.csv -p probability -l label -o plot.png
        plot both.csv -p probability -l label --kind decision -o decision.png
        plot rows.csv -p score -l label --bins 5 -o by.png
        show c.json
        show i.json --json
        show i.json --at 0.2
        methods
        methods --json
        report rows.csv -s score -l label -o page.html
        report kinds.csv -s p_low,p_mid,p_high,p_top -l kind -o kinds.html
        fit rows.csv --segment country --features x -o no.json
        nothing
    """.strip().splitlines():
        yield f"calibrant {words.strip()}", lambda words=words: command(words.split(), folder)
    for words in ("", "fit", "apply", "evaluate", "report", "plot", "check", "compare", "export",
                  "monitor", "methods", "show", "demo"):  # fmt: skip
        yield f"help of {words}", lambda words=words: command([*words.split(), "--help"], folder)


def command(words: list[str], folder: Path) -> str:
    """What a command prints, its exit code, and what it has written."""
    before = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    env = {**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1", "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "-m", "calibrant", *words],
        cwd=folder, env=env, capture_output=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    told = [f"exit {done.returncode}", done.stdout.decode(), done.stderr.decode()]
    for file in sorted(folder.iterdir()):
        if before.get(file) != file.stat().st_mtime_ns:
            told += [file.name, written(file)]
    return "\n".join(told).replace(str(folder), "<folder>")


def written(file: Path) -> str:
    if file.suffix == ".parquet":
        import pandas as pd

        return text_of(pd.read_parquet(file).to_csv())
    if file.suffix == ".onnx":
        return text_of(onnx_graph(file.read_bytes()))
    held = file.read_bytes()
    try:
        return re.sub(r'"(version|calibrant)": "[^"]*"', "", held.decode())
    except UnicodeDecodeError:
        return text_of(held)


def light(cal: Any, rows: Rows) -> Results:
    """What is imported by what, and which names there are."""
    with tempfile.TemporaryDirectory() as held:
        file = Path(held) / "c.json"
        cal.save(cal.Isotonic().fit(rows.s, rows.y), file)
        heavy = "sklearn scipy scipy.optimize numba pandas polars matplotlib duckdb typer"
        for name, text in {
            "import": "",
            "load": f"cal.load({str(file)!r}).predict_proba([0.2])",
            "sql": f"cal.to_sql(cal.load({str(file)!r}))",
            "platt": "cal.Platt().fit([0.1, 0.2, 0.3], [0, 1, 0])",
            "evaluate": "cal.evaluate",
            "command line": "import calibrant.cli",
        }.items():
            seen = f"print([name for name in {heavy.split()} if name in sys.modules])"
            lines = f"import sys; import calibrant as cal; {text}; {seen}"
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", lines],
                capture_output=True,
                text=True,
                check=False,
            )
            yield f"modules of {name}", lambda done=done: done.stdout + done.stderr[-300:]
    yield "names", lambda: sorted(name for name in dir(cal) if not name.startswith("_"))
    yield (
        "skops",
        lambda: [re.sub(r"calibrant\.[a-z_.]+\.", "", n) for n in cal.export.skops_types()],
    )
    from sklearn import config_context

    with config_context(enable_metadata_routing=True):
        for name in (*ONE_SCORE, "AutoCalibrator", "CalibratedClassifier"):
            yield (
                f"routing of {name}",
                lambda name=name: str(getattr(cal, name)().get_metadata_routing()),
            )


CHAPTERS = {chapter.__name__: chapter for chapter in (
    fits, choices, several, beside, models, measures, later, pictures, errors, commands, light,
)}  # fmt: skip


# --- both checkouts -------------------------------------------------------------------------------


def check_code(calibrant: Any) -> None:
    """Refuse to compare a checkout with itself: its own code must be what was imported."""
    wanted, ran = Path(os.environ["PYTHONPATH"]).resolve(), Path(calibrant.__file__).resolve()
    if not ran.is_relative_to(wanted):
        raise SystemExit(f"the code in {wanted} was to run, but {ran} did")


def child(chapter: str) -> None:
    """The results of a chapter, as JSON on standard output."""
    out, sys.stdout = sys.stdout, sys.stderr
    warnings.simplefilter("ignore")
    import calibrant as cal

    check_code(cal)
    found = {name: outcome(work) for name, work in CHAPTERS[chapter](cal, Rows())}
    json.dump(found, out)


def results(checkout: Path, chapter: str) -> dict[str, str]:
    env = {**os.environ, "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, str(Path(__file__).resolve()), "--child", chapter]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"chapter {chapter} failed in {checkout}:\n{done.stderr[-3000:]}")
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("before", type=Path, nargs="?", help="a checkout of the code as it was")
    parser.add_argument("--only", nargs="+", choices=list(CHAPTERS), default=list(CHAPTERS))
    parser.add_argument("--show", type=int, default=0, metavar="N", help="lines of each difference")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.child:
        child(told.child)
        return
    if told.before is None or not (told.before / "src" / "calibrant").is_dir():
        parser.error("name a folder with a checkout: git worktree add FOLDER COMMIT")
    differ = 0
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        for chapter in told.only:
            before, after = both.map(
                lambda checkout, chapter=chapter: results(checkout, chapter), (told.before, HERE)
            )
            other = [name for name in before | after if before.get(name) != after.get(name)]
            differ += len(other)
            print(f"{chapter}: {len(before | after)} results, {len(other)} differ", flush=True)
            for name in other:
                print(f"  {name}")
                sides = [(side.get(name) or "not there").splitlines() for side in (before, after)]
                lines = list(difflib.unified_diff(*sides, "before", "after", "", "", 0, ""))
                for line in lines[: told.show]:
                    print(f"      {line[:200]}")
    raise SystemExit(1 if differ else 0)


if __name__ == "__main__":
    main()
