"""Named arrays as the bytes of an .npz file and back: plain numbers only.

`numpy.load` trusts the header of a file, even one that promises a terabyte. Here an array must be
of one of a few kinds, not compressed, and as long as its header says. Anything else is refused
before memory is asked for.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.json_facts import shown
from calibrant.errors import InputError

#: what a saved array may hold
KINDS = {text: np.dtype(text) for text in ("<f8", "<i8", "<i4", "|b1")}
MAGIC = b"\x93NUMPY\x01\x00"
HEADER = re.compile(
    r"\{'descr': '([<|]\w\d)', 'fortran_order': (False|True), 'shape': \(([\d, ]{0,99})\), \} *\n"
)
#: the errors that reading a damaged archive may raise
BROKEN = (
    zipfile.BadZipFile,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
)


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The arrays as an .npz file.

    >>> unpack(pack({"a": np.arange(3.0)}))
    {'a': array([0., 1., 2.])}
    """
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:  # np.savez refuses objects only from NumPy 2.1 on
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    return stream.getvalue()


def unpack(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file that `pack` made; anything else is refused with a reason.

    Cost: O(bytes) of time and memory, whatever the file says of itself.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            _check(members, len(content))
            return {one.filename[:-4]: _array(archive.read(one), one.filename) for one in members}
    except InputError:
        raise
    except BROKEN as wrong:
        reason = str(wrong)[:200] or "it is cut short"  # names in it may be of any length
        raise InputError(f"it does not hold arrays: {reason}") from wrong


def _check(members: list[zipfile.ZipInfo], size: int) -> None:
    if any(one.compress_type != zipfile.ZIP_STORED or one.flag_bits & 1 for one in members):
        raise InputError("it must hold plain arrays, not compressed or encrypted ones.")
    names = {one.filename for one in members}
    if len(names) < len(members) or not all(name.endswith(".npy") for name in names):
        raise InputError("it must hold arrays of different names, each a .npy, and nothing else.")
    if sum(one.file_size for one in members) > size:  # entries may share bytes
        raise InputError("its arrays are larger than the file that holds them.")


def _array(content: bytes, filename: str) -> NDArray[Any]:
    name = shown(filename)
    if not content.startswith(MAGIC):
        raise InputError(f"it does not hold arrays of format version 1.0, but {name}.")
    start = len(MAGIC) + 2
    (length,) = struct.unpack_from("<H", content, len(MAGIC))
    header = HEADER.fullmatch(content[start : start + length].decode("latin-1"))
    kind = None if header is None else KINDS.get(header[1])
    if header is None or kind is None:
        raise InputError(f"it does not hold arrays of plain numbers, but {name}.")
    shape = tuple(int(size) for size in header[3].replace(",", " ").split())
    data = content[start + length :]
    if prod(shape) * kind.itemsize != len(data):
        raise InputError(f"its {name} says that its shape is {shape}, but holds {len(data)} bytes.")
    if kind.kind == "b" and np.frombuffer(data, dtype=np.uint8).max(initial=0) > 1:
        raise InputError(f"its {name} holds bytes that are neither false nor true.")
    array = np.frombuffer(data, dtype=kind)
    return array.reshape(shape, order="F" if header[2] == "True" else "C")
