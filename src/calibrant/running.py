"""Long work on a thread of its own, so that Ctrl-C works at once; and its progress, shown."""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TypeVar

from calibrant.errors import import_extra

T = TypeVar("T")

#: the signals that stop a command, by the exception that each becomes
STOPS: dict[Any, int] = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}
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
    ended = threading.Event()  # not join(): after an interrupted join a thread may look ended
    turn = threading.Lock()  # taken once: work either begins or is given up before that

    def run() -> None:
        if not turn.acquire(blocking=False):
            return
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
        begun = not turn.acquire(blocking=False)
        last = time.monotonic() + LONGEST_STOP
        while stop and begun and not ended.is_set() and time.monotonic() < last:
            with suppress(KeyboardInterrupt, SystemExit):
                stop()
                ended.wait(0.1)
        if begun and not ended.is_set():
            _left_behind.append(worker)
        raise
    if failed:
        raise failed.pop()
    return done[0]


#: threads whose work goes on though the wait for it was interrupted
_left_behind: list[threading.Thread] = []


def exit_with(code: int) -> NoReturn:
    """End the process with this exit code.

    Where interrupted work goes on, the process ends at once: Python would end the thread of that
    work wherever it stands, and inside compiled code this aborts the process.
    """
    if any(worker.is_alive() for worker in _left_behind):
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # a reader that went away, a stream that is closed
                stream.flush()
        os._exit(code)
    sys.exit(code)


@contextmanager
def stoppable() -> Iterator[None]:
    """Inside this block SIGINT raises KeyboardInterrupt and SIGTERM SystemExit; none is lost.

    Python drops an exception that comes inside a finaliser or a callback: the signal comes again a
    moment later. During an import it waits for the end: extension modules would make another error
    of it, and Python's own machinery could leave a lock behind, for which other threads wait for
    ever. It also waits for the end of an `signals_delayed` block.

    >>> with stoppable():
    ...     signal.raise_signal(signal.SIGTERM)
    Traceback (most recent call last):
        ...
    SystemExit: 143
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
            frame = frame.f_back
        if _unbroken or frame is not None:  # a frame of Python's own import machinery
            _raise_later(number)
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            sys.exit(128 + number)

    def dropped(unraisable: Any) -> None:
        if unraisable.exc_type in STOPS:
            _raise_later(STOPS[unraisable.exc_type])
        else:
            hook(unraisable)

    hook, sys.unraisablehook = sys.unraisablehook, dropped
    former = {number: signal.getsignal(number) for number in STOPS.values()}
    if former[signal.SIGINT] is not signal.default_int_handler:
        del former[signal.SIGINT]  # as in the background of a shell, which ignores it
    try:
        for number in former:
            signal.signal(number, stop)
        yield
    finally:
        for number, usual in former.items():
            signal.signal(number, usual)
        sys.unraisablehook = hook


#: the blocks of the main thread that a signal must not leave half done
_unbroken: list[None] = []


@contextmanager
def signals_delayed() -> Iterator[None]:
    """Inside this block signals wait until its end; see `stoppable`.

    It is for short work that must not be left half done, such as removing a folder.
    """
    if threading.current_thread() is not threading.main_thread():  # only that one gets signals
        yield
        return
    _unbroken.append(None)
    try:
        yield
    finally:
        _unbroken.pop()


def _raise_later(number: int) -> None:
    """Send a signal to the main thread a moment later, from a new thread."""

    def send() -> None:
        time.sleep(0.01)
        if sys.platform == "win32":
            signal.raise_signal(number)
        else:  # this also wakes a main thread that waits
            signal.pthread_kill(threading.main_thread().ident or 0, number)

    _thread.start_new_thread(send, ())


# --- A bar for long work, shown only where it was asked for ---------------------------------------


def track(items: Iterable[T], total: int, what: str, *, show: bool) -> Iterator[T]:
    """The items one by one; with ``show`` a bar on stderr says how many of ``total`` are done.

    >>> list(track("ab", 2, "letters", show=False))
    ['a', 'b']
    """
    if not show:
        yield from items
        return
    console = import_extra("rich.console", extra="cli").Console(stderr=True)
    progress = import_extra("rich.progress", extra="cli")
    yield from progress.track(items, description=what, total=total, console=console)
