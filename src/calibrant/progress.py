"""A bar for long work, shown only where it was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from calibrant.errors import import_extra

T = TypeVar("T")


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
