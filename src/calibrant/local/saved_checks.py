"""What a file of a local calibrator must hold is checked by one line each."""

from __future__ import annotations

from calibrant.errors import InputError


def check_saved(fine: object, reason: str) -> None:
    """Refuse a file as damaged, with a reason, unless what was found in it is ``fine``."""
    if not fine:
        raise InputError(f"the file is damaged: {reason}")
