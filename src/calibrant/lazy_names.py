"""Public names that are imported when they are first used; a stub beside the package lists them."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable
from typing import Any

#: the packages that calibrant itself needs for all but loading and applying, by module
NEEDED = {
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "numba": "numba",
    "narwhals": "narwhals",
}


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its ``__init__.pyi``.

    The stub has lines ``from module import name as name``: type checkers and editors read it as
    it is, and here each name is taken from its module when somebody asks for it (PEP 562).
    """
    module = sys.modules[package]
    homes = _homes(module)

    def get(name: str) -> Any:
        if name not in homes:
            hint = "" if name.startswith("_") else _near_name(name, package, homes)
            raise AttributeError(f"module {package!r} has no attribute {name!r}.{hint}")
        is_room = homes[name] == package
        try:
            home = importlib.import_module(f"{package}.{name}" if is_room else homes[name])
        except ModuleNotFoundError as missing:
            raise _in_words(missing, f"{package}.{name}") from missing
        value = home if is_room else getattr(home, name)
        setattr(module, name, value)
        return value

    names = sorted(homes)
    return get, lambda: names, names


def _in_words(missing: ModuleNotFoundError, name: str) -> ModuleNotFoundError:
    """The error with a hint how to install the missing package, if that package is known."""
    known = NEEDED.get((missing.name or "").partition(".")[0])
    if known is None:
        return missing
    return ModuleNotFoundError(
        f"{name} needs the package {known!r}, which is not installed. Install it with: pip install "
        f"{known} (pip install calibrant brings all that fits need). Only loading and applying a "
        "saved calibrator work without it.",
        name=missing.name,
    )


def _homes(module: Any, room: str = "") -> dict[str, str]:
    """The public names in a package's stub, or in that of one of its rooms, with the module of
    each."""
    stub = os.path.join(os.path.dirname(str(module.__file__)), room, "__init__.pyi")
    text = module.__spec__.loader.get_data(stub).decode()
    return {name: home for home, name in re.findall(r"from (\S+) import \(?\s*(\w+) as", text)}


def _near_name(name: str, package: str, homes: dict[str, str]) -> str:
    """A hint at the public name that may be meant: one in a room of the package, or the most
    similar."""
    import difflib

    for room in ("metrics", "diagrams"):
        if homes.get(room) == package and name in _homes(sys.modules[package], room):
            return f" Did you mean {package}.{room}.{name}?"
    near = difflib.get_close_matches(name, homes, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
