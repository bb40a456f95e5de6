"""The functions of ``pyspark.sql.functions``, imported at the first use: PySpark is an extra."""

from __future__ import annotations

from typing import Any

from calibrant.errors import MissingExtraError, import_extra

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    try:
        return getattr(import_extra("pyspark.sql.functions", extra="spark"), name)
    except MissingExtraError as missing:  # pickle and skops ask every module for every name
        raise AttributeError(str(missing)) from missing
