"""What may be a candidate of the automatic choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.estimators.base import Calibrator
from calibrant.estimators.registry import calibrators_of
from calibrant.multiclass.coded_calibrator import CodedCalibrator
from calibrant.scaling.base import VectorCalibrator

#: what calibrates scores alone: the first kind takes two classes, the others several
KINDS = (Calibrator, VectorCalibrator, CodedCalibrator)


class Candidates:
    """The limits of ``candidates``: calibrators of scores, in a list or by name."""

    def allows(self, value: Any) -> bool:
        if not isinstance(value, (list, tuple, Mapping)):
            return False
        found = calibrators_of(value)
        inside = found.values() if isinstance(found, Mapping) else found
        return all(isinstance(one, KINDS) for one in inside)

    def __str__(self) -> str:
        return "a list of calibrators of scores, or a dict of names, such as [Platt(), 'isotonic']"
