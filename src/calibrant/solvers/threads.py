"""A single thread of BLAS for fits with many products of small matrices."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS uses a single thread inside this block.

    A fit with many products of a few hundred rows is not faster with more threads. Where another
    process keeps a core busy it is even tens of times slower, since the threads that wait spin.
    Entering costs 40 microseconds.

    Where a library has one number of threads for the whole process, it comes back when the last of
    all threads has left its block.

    >>> with one_thread(), one_thread():
    ...     pass
    """
    of_thread, _ = _libraries()
    with of_thread.limit(limits=1, user_api="blas"), _shared:
        yield


class _Shared:
    """The thread limit for BLAS libraries that have one number of threads for the whole process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.blocks = 0
        self.before: list[int] = []

    def __enter__(self) -> None:
        with self.lock:
            _, libraries = _libraries()
            if not self.blocks:
                self.before = [library.get_num_threads() for library in libraries]
            self.blocks += 1
            self._set([1] * len(libraries))

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.blocks -= 1
            if not self.blocks:
                self._set(self.before)

    def _set(self, numbers: list[int]) -> None:
        _, libraries = _libraries()
        for library, number in zip(libraries, numbers, strict=True):
            library.set_num_threads(number)
            if hasattr(library, "clear_controlling_thread"):  # threadpoolctl 3.8: let others set it
                library.clear_controlling_thread()


_shared = _Shared()


@functools.cache
def _libraries() -> tuple[Any, list[Any]]:
    """The BLAS libraries that are loaded: those with a number for each thread, and the others.

    (scikit-learn depends on threadpoolctl.)
    """
    from threadpoolctl import ThreadpoolController

    blas = ThreadpoolController().select(user_api="blas")
    of_thread, shared = list[Any](), list[Any]()
    for library in blas.lib_controllers:
        by_openmp = library.internal_api == "openblas" and library.threading_layer == "openmp"
        own = by_openmp or library.internal_api == "mkl"
        (of_thread if own else shared).append(library)
    return blas.select(filepath=[library.filepath for library in of_thread]), shared
