"""Public names that are imported when they are first used; a stub beside the package lists them."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its ``__init__.pyi``.

    The stub has lines ``from module import name as name``: type checkers and editors read it as
    it is, and here each name is taken from its module when somebody asks for it (PEP 562).
    """
    module = sys.modules[package]
    stub = os.path.join(os.path.dirname(str(module.__file__)), "__init__.pyi")
    text = module.__spec__.loader.get_data(stub).decode()  # type: ignore[union-attr]
    homes = {name: home for home, name in re.findall(r"from (\S+) import \(?\s*(\w+) as", text)}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:  # a room
            value: Any = importlib.import_module(f"{package}.{name}")
        else:
            value = getattr(importlib.import_module(homes[name]), name)
        setattr(module, name, value)
        return value

    names = sorted(homes)
    return get, lambda: names, names
