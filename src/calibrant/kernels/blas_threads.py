"""Small matrices are multiplied by one thread: on a busy machine more only wait for each other."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["one_thread"]


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS with a single thread while this holds.

    A fit of many products of some hundred rows is not faster with more threads, and where another
    process keeps a core busy it is tens of times slower: threads that wait for it spin. Entering
    costs 40 microseconds.

    >>> with one_thread(), one_thread():
    ...     pass
    """
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@functools.cache
def _libraries() -> Any:
    """What is loaded, looked for once: scikit-learn brings the package that can tell."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
