"""How files are read, where they can be read in more than one way: options for one job."""

from __future__ import annotations

from dataclasses import dataclass
from io import BufferedIOBase

from calibrant.data.validation import check_word
from calibrant.engines.files.number_spelling import NumberSpelling
from calibrant.errors import ParameterError

ON_MISSING = ("error", "drop")
#: what standard input and output may be
FORMATS = ("csv", "tsv", "jsonl", "parquet", "xlsx")


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
