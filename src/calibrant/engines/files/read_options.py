"""How files are read, where they can be read in more than one way: options for one job.

Standard input becomes a file: data are read more than once, and a stream only once.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from io import BufferedIOBase
from pathlib import Path
from typing import cast

from calibrant.data.validation import check_word
from calibrant.engines.files.number_spelling import NumberSpelling
from calibrant.errors import InputError, ParameterError
from calibrant.outputs import private_file

ON_MISSING = ("error", "drop")
#: what standard input and output may be
FORMATS = ("csv", "tsv", "jsonl", "parquet", "xlsx")
#: how a file of each format begins, where that tells; all else is CSV
BEGINNINGS = {b"PAR1": "parquet", b"PK\x03\x04": "xlsx"}
PACKED = b"\x1f\x8b"


@dataclass(frozen=True)
class ReadOptions:
    """How files are read.

    Parameters
    ----------
    decimal : {".", ","}, optional
        The mark before decimals. By default it is told from the numbers.
    missing : {"error", "drop"}, default="error"
        What to do with rows that have no score or no label.
    standard_input : stream of bytes, optional
        What the file name ``-`` stands for.
    format : one of FORMATS, optional
        What kind of file standard input is. By default its first bytes tell a Parquet or Excel
        file, and all else is CSV.
    repeatable : bool, default=False
        Whether standard input is a copy, which is read from its beginning each time.
    """

    decimal: str | None = None
    missing: str = "error"
    standard_input: BufferedIOBase | None = None
    format: str | None = None
    repeatable: bool = False

    def __post_init__(self) -> None:
        if self.decimal is not None and self.decimal not in (".", ","):
            raise ParameterError(f"decimal must be . or , but {self.decimal!r} came.")
        check_word("missing", self.missing, ON_MISSING)
        if self.format is not None and self.format not in FORMATS:
            raise ParameterError(
                f"format must be {' or '.join(FORMATS)}, but {self.format!r} came."
            )

    @property
    def spelling(self) -> NumberSpelling | None:
        """How numbers are read at first."""
        return None if self.decimal is None else NumberSpelling(self.decimal)

    def close(self) -> None:
        """Close the copy of standard input, if there is one."""
        if self.repeatable and self.standard_input is not None:
            self.standard_input.close()

    @property
    def drop(self) -> bool:
        """Whether rows without a score or label are left out."""
        return self.missing == "drop"


PLAIN_READING = ReadOptions()


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
