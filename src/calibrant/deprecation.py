"""Names that go away: they work for two releases, and say what to write instead.

The warning is a FutureWarning. Python shows it to everyone, once for each line that calls. A
DeprecationWarning is shown in ``__main__`` and in tests only: people whose calibration runs inside
another program would learn of it when the name is gone.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from calibrant.errors import ParameterError, caller_level

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Deprecation:
    """Since when a name is old, and until when it works.

    Parameters
    ----------
    since : the first version that warns
    until : the first version without the old name

    Examples
    --------
    >>> Deprecation(since="0.3", until="0.5").words("cal.report", "cal.calibration_report")
    'cal.report is deprecated since 0.3 and goes away in 0.5: use cal.calibration_report.'
    """

    since: str
    until: str

    def words(self, old: str, new: str) -> str:
        """What the warning says."""
        return f"{old} is deprecated since {self.since} and goes away in {self.until}: use {new}."

    def warn(self, old: str, new: str) -> None:
        """Warn at the user's line, which Python shows once for each such line."""
        warnings.warn(self.words(old, new), FutureWarning, stacklevel=caller_level())


def renamed_function(
    old: str, function: Callable[P, R], when: Deprecation, *, new: str | None = None
) -> Callable[P, R]:
    """A function under its old name: it warns, and does what the new one does.

    >>> def calibration_report(): return "page"
    >>> report = renamed_function("report", calibration_report, Deprecation("0.3", "0.5"))
    >>> import warnings
    >>> with warnings.catch_warnings(record=True, action="always") as said:
    ...     report(), str(said[0].message)
    ('page', 'report is deprecated since 0.3 and goes away in 0.5: use calibration_report.')
    """

    @functools.wraps(function)
    def warned(*args: P.args, **kwargs: P.kwargs) -> R:
        when.warn(old, new or function.__name__)
        return function(*args, **kwargs)

    warned.__name__ = warned.__qualname__ = old
    return warned


def renamed_parameters(
    names: Mapping[str, str], when: Deprecation
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: parameters by their old names, which are the keys, are passed by the new ones.

    Old and new together are a ParameterError.

    >>> @renamed_parameters({"n_boot": "replicates"}, Deprecation("0.3", "0.5"))
    ... def interval(*, replicates=200):
    ...     return replicates
    >>> import warnings
    >>> with warnings.catch_warnings(record=True, action="always") as said:
    ...     interval(n_boot=50), len(said)
    (50, 1)
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        called = function.__qualname__.removesuffix(".__init__").rpartition(".<locals>.")[2]

        @functools.wraps(function)
        def renamed(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in names.keys() & kwargs.keys():
                new = names[old]
                if new in kwargs:
                    raise ParameterError(
                        f"{called} takes {new} or its old name {old}, but both came. Drop {old}."
                    )
                when.warn(f"{old}= of {called}", f"{new}=")
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return renamed

    return decorate


def moved_names(
    module: str,
    names: Mapping[str, tuple[str, Callable[[], Any]]],
    when: Deprecation,
    otherwise: Callable[[str], Any] | None = None,
) -> Callable[[str], Any]:
    """A module's ``__getattr__`` with old names in it.

    Parameters
    ----------
    module : the name of the module
    names : for each old name, what to write instead and a function that gets it
    when : Deprecation
    otherwise : the ``__getattr__`` that the module has already, such as that of `lazy_names`

    Examples
    --------
    >>> import math
    >>> when = Deprecation("0.3", "0.5")
    >>> get = moved_names("cal", {"log": ("math.log", lambda: math.log)}, when)
    >>> import warnings
    >>> with warnings.catch_warnings(record=True, action="always") as said:
    ...     get("log") is math.log, str(said[0].message)
    (True, 'cal.log is deprecated since 0.3 and goes away in 0.5: use math.log.')
    """

    def get(name: str) -> Any:
        if name in names:
            new, found = names[name]
            when.warn(f"{module}.{name}", new)
            return found()
        if otherwise is not None:
            return otherwise(name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return get
