"""``python -m calibrant`` is the command ``calibrant``, also where that is not on the PATH."""

from __future__ import annotations

from calibrant.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
