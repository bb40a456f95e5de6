"""Long work on a thread of its own, so that Ctrl-C works at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

__all__ = ["off_main_thread"]

T = TypeVar("T")


def off_main_thread(
    work: Callable[[], T],
    *,
    meanwhile: Callable[[], None] | None = None,
    every: float = 0.1,
    stop: Callable[[], None] | None = None,
    thread: Callable[..., Any] = threading.Thread,
) -> T:
    """The result of ``work``, which runs on a daemon thread while this thread waits.

    Parameters
    ----------
    work : function without arguments
        What it raises is raised here.
    meanwhile : function, optional
        Called ``every`` so many seconds while the work goes on: it shows progress.
    stop : function, optional
        Called when the wait is interrupted, again and again until the work has ended. Without it
        the interruption does not wait for the work.
    thread : class of threads, default=threading.Thread

    Examples
    --------
    >>> off_main_thread(lambda: 6 * 7)
    42
    """
    done: list[T] = []
    failed: list[BaseException] = []
    ended = threading.Event()  # not join(): after an interrupted join a thread may look ended

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    worker = thread(target=run, name="calibrant-work")
    worker.daemon = True
    try:
        try:
            worker.start()
        except Exception:
            ended.set()  # no thread came to be
            raise
        while not ended.wait(every):
            if meanwhile is not None:
                meanwhile()
    except BaseException:
        while stop is not None and not ended.is_set():
            with suppress(KeyboardInterrupt, SystemExit):
                stop()
                ended.wait(0.1)
        raise
    if failed:
        raise failed.pop()
    return done[0]
