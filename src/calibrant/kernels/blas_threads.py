"""One thread for products of small matrices: on a busy machine, more only wait for each other."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS uses a single thread inside this block.

    A fit with many products of a few hundred rows is not faster with more threads. Where another
    process keeps a core busy it is even tens of times slower, since the threads that wait spin.
    Entering costs 40 microseconds.

    >>> with one_thread(), one_thread():
    ...     pass
    """
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@functools.cache
def _libraries() -> Any:
    """The BLAS libraries that are loaded. (scikit-learn depends on threadpoolctl.)"""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
