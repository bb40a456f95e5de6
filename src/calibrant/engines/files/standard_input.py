"""Standard input as a file: data are read more than once, and a stream only once."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from io import BufferedIOBase
from pathlib import Path
from typing import cast

from calibrant.engines.files.read_options import ReadOptions
from calibrant.errors import InputError
from calibrant.outputs import private_file

#: how a file of each format begins, where that tells; all else is CSV
BEGINNINGS = {b"PAR1": "parquet", b"PK\x03\x04": "xlsx"}
PACKED = b"\x1f\x8b"


def spool(reading: ReadOptions, path: Path) -> Path:
    """Copy standard input to a file that only this user can read; its name has an ending.

    ``path`` is where the file goes, without an ending, in a folder that is removed by its owner.
    """
    if reading.standard_input is None:
        raise InputError("there is no standard input to read (-). Name a file.")
    if reading.repeatable:
        reading.standard_input.seek(0)
    with private_file(path) as copy:
        while block := reading.standard_input.read1(1 << 20):  # what is there: Ctrl-C works
            copy.write(block)
    with path.open("rb") as spooled:
        start = spooled.read(4)
    if not start:
        raise InputError("standard input is empty. It must hold named columns and rows of data.")
    kind = reading.format or BEGINNINGS.get(start, "csv")
    packed = ".gz" if start.startswith(PACKED) else ""
    return path.rename(path.with_suffix(f".{kind}{packed}"))


def repeatable(reading: ReadOptions) -> ReadOptions:
    """The same options with a copy of standard input, which can be spooled more than once.

    The copy has no name: nobody else can read it, and it goes when it is closed, by the options.
    """
    if reading.standard_input is None or reading.repeatable:
        return reading
    copy = tempfile.TemporaryFile(prefix="calibrant-")  # noqa: SIM115 - the options close it
    shutil.copyfileobj(reading.standard_input, copy)
    return replace(reading, standard_input=cast(BufferedIOBase, copy), repeatable=True)
