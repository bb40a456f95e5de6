"""Ctrl-C while the process behind a session starts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def interrupt_handler() -> Any:
    """What Ctrl-C does now, if this thread may set it."""
    if threading.current_thread() is threading.main_thread():
        return signal.getsignal(signal.SIGINT)
    return None


@contextmanager
def interrupts_later(handler: Any) -> Iterator[None]:
    """Keep a Ctrl-C until the end; PySpark, interrupted, would leave a Java behind that never ends.

    A second one is not kept. ``handler`` is what Ctrl-C does otherwise, None on another thread.
    """
    kept: list[Any] = []

    def keep(number: int, at: Any) -> None:
        kept.append((number, at))
        if len(kept) > 1:
            raise KeyboardInterrupt

    if handler is not None:
        signal.signal(signal.SIGINT, keep)
    try:
        yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
    if kept and callable(handler):
        handler(*kept[0])
