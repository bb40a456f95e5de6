"""Arrays of PyTorch, JAX and CuPy as NumPy arrays, and back where that is asked for.

None of these libraries is imported before an array of it comes.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

#: libraries whose arrays are known, by the module that their type is defined in
LIBRARIES = {"torch": "torch", "jax": "jax", "jaxlib": "jax", "cupy": "cupy"}


def library_of(values: Any) -> str | None:
    """The library of a tensor: ``"torch"``, ``"jax"`` or ``"cupy"``; None for anything else.

    >>> library_of(np.zeros(3)) is None
    True
    """
    for kind in type(values).__mro__:  # a torch.nn.Parameter or a user's subclass is a tensor, too
        library = LIBRARIES.get(kind.__module__.partition(".")[0])
        if library is not None and hasattr(values, "shape"):
            return library
    return None


def on_host(values: Any) -> Any:
    """A tensor as a NumPy array; anything else as it is.

    The array is a view of the tensor where NumPy can have one (on the CPU, in a type that NumPy
    knows). Otherwise it is one copy: from another device, or of bfloat16 and narrower types as
    float32, which holds each of their values. Gradients are left behind.
    """
    library = library_of(values)
    if library == "torch":
        values = values.detach()
        if values.is_floating_point() and values.dtype.itemsize < 4:
            values = values.float()
        return values.cpu().numpy()
    if library == "cupy":
        return values.get()
    if library == "jax":
        return np.asarray(values.astype(np.float32) if _is_narrow(values.dtype) else values)
    if isinstance(values, np.ndarray) and _is_narrow(values.dtype):
        return values.astype(np.float32)
    return values


def stays_tensor(values: Any) -> bool:
    """Whether this is a tensor, and scikit-learn's ``array_api_dispatch`` asks for tensors where
    tensors come in."""
    if library_of(values) is None or "sklearn" not in sys.modules:
        return False
    return bool(sys.modules["sklearn"].get_config()["array_api_dispatch"])


def as_came(given: Any, values: Any) -> Any:
    """NumPy numbers as a tensor like the given one, on its device, if that `stays_tensor`.
    Otherwise, and if they are text, unchanged.

    Floats become float32, unless the given tensor is float64 or holds no floats; then float64.
    """
    if not stays_tensor(given) or values.dtype.kind not in "biuf":
        return values
    name = str(given.dtype).removeprefix("torch.")
    if values.dtype.kind == "f" and "float" in name and name != "float64":
        values = values.astype(np.float32)
    library = library_of(given)
    if library == "torch":
        return importlib.import_module("torch").tensor(values, device=given.device)
    if library == "jax":
        return importlib.import_module("jax").device_put(values, next(iter(given.devices())))
    with given.device:
        return importlib.import_module("cupy").asarray(values)


def _is_narrow(dtype: Any) -> bool:
    """Whether these are floats that NumPy cannot compute with, such as JAX's bfloat16."""
    return bool(dtype.kind == "V" and "float" in dtype.name)
