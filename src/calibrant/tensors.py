"""Arrays of PyTorch, JAX and CuPy as NumPy arrays. None of these libraries is imported here."""

from __future__ import annotations

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


def _is_narrow(dtype: Any) -> bool:
    """Whether these are floats that NumPy cannot compute with, such as JAX's bfloat16."""
    return bool(dtype.kind == "V" and "float" in dtype.name)
