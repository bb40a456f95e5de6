"""Whether a kernel is being compiled just now, asked without importing numba."""

from __future__ import annotations

import sys


def is_compiling() -> bool:
    """Whether another thread compiles a kernel, which happens at its first use only.

    >>> is_compiling()
    False
    """
    loaded = [module for name, module in list(sys.modules.items()) if name.startswith(__package__)]
    found = (value for module in loaded for value in list(vars(module).values()))
    return any(value.is_compiling for value in found if hasattr(value, "py_func"))
