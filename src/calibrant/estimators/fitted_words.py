"""A fitted calibrator in a few lines: what it gives, by which map, for which scores, from where."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from calibrant.data.json_facts import shown

#: letters of a line
WIDEST = 160


def in_lines(fitted: Any, what: str) -> list[str]:
    """At most five lines; ``what`` describes the map, or what stands for it."""
    method = fitted.method or "an unknown method"
    if fitted.pos_label is None:
        first = f"probabilities of {len(fitted.classes)} classes by {method}"
    else:
        first = f"the probability of {shown(fitted.pos_label)} by {method}"
    labels = " and ".join(shown(label) for label in fitted.classes[:6])
    more = f" and {len(fitted.classes) - 6} more" if len(fitted.classes) > 6 else ""
    lines = [f"{type(fitted).__name__}: {first}", what, f"labels: {labels}{more}"]
    known = fitted.score_range
    if known is not None:
        kind = "probabilities" if known.probabilities else "scores"
        lines.append(f"for {kind} from {known.low:.6g} to {known.high:.6g}")
    told = _origin(fitted.provenance)
    lines += [told] if told else []
    return [line if len(line) <= WIDEST else f"{line[: WIDEST - 1]}…" for line in lines]


def _origin(facts: Mapping[str, Any]) -> str:
    """How many rows it was fitted to, and by which version."""
    rows, version = facts.get("rows"), facts.get("calibrant")
    found = [f"fitted to {rows:,} rows"] if isinstance(rows, int) else []
    found += [f"by calibrant {version}"] if isinstance(version, str) else []
    return " ".join(found)


def as_html(lines: list[str]) -> str:
    """The same for notebooks: the first line in bold."""
    first, *rest = (html.escape(line) for line in lines)
    return f"<div><b>{first}</b><br>{'<br>'.join(rest)}</div>"
