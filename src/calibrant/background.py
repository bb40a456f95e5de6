"""Long work on a thread of its own, so that Ctrl-C works at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

#: seconds that an interruption waits for the work to end; work that lasts longer is left behind
LONGEST_STOP = 60.0


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
        Called when the wait is interrupted, again and again until the work has ended, for a minute
        at most. Without it the interruption does not wait for the work.
    thread : class of threads, default=threading.Thread

    Examples
    --------
    >>> off_main_thread(lambda: 6 * 7)
    42
    """
    done: list[T] = []
    failed: list[BaseException] = []
    # events, not join(): after an interrupted join a thread may look ended
    begun, given_up, ended = (threading.Event() for _ in range(3))
    lock = threading.Lock()  # work either begins or is given up before that

    def run() -> None:
        with lock:
            if given_up.is_set():
                return
            begun.set()
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    worker = thread(target=run, name="calibrant-work")
    worker.daemon = True
    try:
        worker.start()
        while not ended.wait(every):
            if meanwhile is not None:
                meanwhile()
    except BaseException:
        with lock:
            given_up.set()
        last = time.monotonic() + LONGEST_STOP
        while stop and begun.is_set() and not ended.is_set() and time.monotonic() < last:
            with suppress(KeyboardInterrupt, SystemExit):
                stop()
                ended.wait(0.1)
        raise
    if failed:
        raise failed.pop()
    return done[0]
