"""The options of a reliability curve, checked when made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from calibrant.errors import ParameterError
from calibrant.metrics.arguments import check_number, check_whole
from calibrant.metrics.bin_sweep import AUTO, Bins, check_bin_count
from calibrant.metrics.binned import BINNINGS
from calibrant.other_words import did_you_mean

#: the histogram has at least this many cells
CELLS = 20
AXES = ("probability", "logit")
#: where a band may hold
BANDS_HOLD = ("simultaneous", "pointwise")
#: for each curve the bands by the names that a caller may use; the first is the default
CURVES: dict[str, dict[str, str]] = {
    "binned": {
        "exact": "exact",
        "bootstrap": "bootstrap",
        "consistency": "consistency",
        "confidence": "exact",
    },
    "isotonic": {"consistency": "consistency", "confidence": "confidence"},
    "smooth": {"consistency": "consistency", "confidence": "confidence"},
}
#: bands that hold place by place only, and what to do
ONLY_POINTWISE: dict[tuple[str, str | None], str] = {
    ("binned", "bootstrap"): "take band='exact'.",
    ("smooth", "confidence"): "it does not know what the kernel flattens. Take curve='isotonic'.",
}


@dataclass(frozen=True)
class CurveOptions:
    """The options of a curve. ``band`` is the one in use: "auto" and synonyms are resolved.

    ``bands`` is where it holds; "auto" is "simultaneous" for consistency bands. With
    ``bins="auto"``, ``binning`` is "mass".
    """

    bins: Bins = 10
    binning: str = "width"
    band: str | None = "auto"
    level: float = 0.95
    replicates: int = 1000
    random_state: Any = 0
    curve: str = "binned"
    sigma: float | None = None
    axes: str = "probability"
    bands: str | None = "auto"

    def __post_init__(self) -> None:
        count = check_bin_count(self.bins)
        check_whole("replicates", self.replicates, 1)
        one_of("binning", self.binning, BINNINGS)
        if count == AUTO:
            object.__setattr__(self, "binning", "mass")
        one_of("curve", self.curve, tuple(CURVES))
        one_of("axes", self.axes, AXES)
        bands = CURVES[self.curve]
        where = "" if self.curve == "binned" else f" where curve={self.curve!r}"
        one_of("band", self.band, ("auto", *bands, None), where)
        if self.band is not None:
            object.__setattr__(self, "band", bands.get(self.band, next(iter(bands))))
        self._resolve_bands()
        check_number("level", self.level, 0.0, 1.0)
        if self.sigma is not None:
            self._check_sigma(self.sigma)

    def _resolve_bands(self) -> None:
        one_of("bands", self.bands, ("auto", *BANDS_HOLD, None))
        known = ONLY_POINTWISE.get((self.curve, self.band))
        if self.bands == "simultaneous" and known:
            raise ParameterError(
                f"bands must be 'pointwise' where curve={self.curve!r} and band={self.band!r}, but "
                f"'simultaneous' came: {known}"
            )
        hold = "simultaneous" if self.band == "consistency" else "pointwise"
        chosen = self.bands if self.bands in BANDS_HOLD else hold
        object.__setattr__(self, "bands", None if self.band is None else chosen)

    @property
    def everywhere(self) -> bool:
        """Whether the band holds everywhere at once."""
        return self.bands == "simultaneous"

    def _check_sigma(self, sigma: Any) -> None:
        number = isinstance(sigma, Real) and not isinstance(sigma, bool)
        if not number or not 1e-6 <= sigma <= 20:
            raise ParameterError(
                f"sigma must be a number of log-odds from 1e-6 to 20, or None, but {sigma!r} came."
            )
        if self.curve != "smooth":
            raise ParameterError(
                f"sigma must be left out unless curve='smooth', but {sigma!r} came with "
                f"curve={self.curve!r}."
            )

    @property
    def cells(self) -> int:
        """How many cells the histogram has; a bin of equal width holds a whole number of them."""
        parts = self.curve == "binned" and self.binning == "width" and self.axes == "probability"
        whole = self.bins if parts and not isinstance(self.bins, str) else 1
        return whole * math.ceil(CELLS / whole)

    @property
    def tail(self) -> float:
        """The probability beyond the band at each end."""
        return (1 - self.level) / 2


def one_of(name: str, value: Any, words: tuple[str | None, ...], where: str = "") -> None:
    """A word, or None, from a short list."""
    if not any(type(value) is type(word) and value == word for word in words):
        allowed = ", ".join(repr(word) for word in words)
        hint = did_you_mean(value, words)
        raise ParameterError(f"{name} must be one of {allowed}{where}, but {value!r} came.{hint}")
