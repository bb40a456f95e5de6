"""Probabilities of several classes as columns of a lazy frame.

They are expressions, but for many classes on Spark: there the map itself is called with blocks of
rows, since the formulas of fifty classes are a query that Spark takes a minute to plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from calibrant.engines.backends import is_spark
from calibrant.engines.expressions import EXPRESSION
from calibrant.engines.frame_builder import FrameBuilder
from calibrant.engines.row_expressions import RowFramePrinter
from calibrant.errors import import_extra
from calibrant.maps import VectorMap

#: the most classes that are written as expressions
MOST_BY_EXPRESSIONS = 10


def of_classes(map_: VectorMap, builder: FrameBuilder, scores: Sequence[str]) -> list[nw.Expr]:
    """The probability of each class, of complete rows of scores."""
    if map_.n_classes > MOST_BY_EXPRESSIONS and _takes_blocks(builder.frame, map_):
        return builder.compute(partial(_add_by_blocks, map_=map_, scores=scores), map_.n_classes)
    return RowFramePrinter(builder, scores).write(map_.plan(EXPRESSION))


def _takes_blocks(frame: nw.LazyFrame[Any], map_: VectorMap) -> bool:
    """Whether it is a frame of a Spark whose workers can call the map.

    They can if Spark hands Arrow columns to functions (from 4.1 on), and if their Python has what
    the map needs. That is tried out on a row.
    """
    if not is_spark(frame) or not hasattr(_functions(), "arrow_udf"):
        return False
    rows: Any = frame.to_native()
    zeros = [_functions().lit(0.0)] * map_.n_columns
    try:
        rows.sparkSession.range(1).select(_function(map_)(*zeros)).collect()
    except Exception:  # whatever a worker lacks: expressions need no worker's Python
        return False
    return True


def _add_by_blocks(
    frame: nw.LazyFrame[Any], map_: VectorMap, scores: Sequence[str], new: Sequence[str]
) -> nw.LazyFrame[Any]:
    """The frame with a column of probabilities for each class."""
    rows: Any = frame.to_native()
    together = f"{new[0]}_all"
    made = rows.withColumn(together, _function(map_)(*map(_functions().col, scores)))
    each = (f"`{together}`[{j}] AS `{name}`" for j, name in enumerate(new))
    opened: nw.LazyFrame[Any] = nw.from_native(made.selectExpr("*", *each).drop(together))
    return opened


def _functions() -> Any:
    return import_extra("pyspark.sql.functions", extra="spark")


def _function(map_: VectorMap) -> Callable[..., Any]:
    """The map as a function of Spark columns, which gives an array."""
    pyarrow = import_extra("pyarrow", extra="spark")

    def of_blocks(*columns: Any) -> Any:
        p = map_(np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns]))
        starts = np.arange(0, p.size + 1, p.shape[1], dtype=np.int32)
        return pyarrow.ListArray.from_arrays(starts, pyarrow.array(p.ravel()))

    of_blocks.__annotations__ = {"columns": pyarrow.Array, "return": pyarrow.Array}
    return _functions().arrow_udf(of_blocks, "array<double>")  # type: ignore[no-any-return]
