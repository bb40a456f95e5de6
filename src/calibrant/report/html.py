"""One page that needs nothing else: the verdict, the table, the picture, and how to apply."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from calibrant.errors import import_extra
from calibrant.metrics import Evaluation
from calibrant.report.words import in_words

__all__ = ["Report", "to_html"]


@dataclass(frozen=True)
class Report:
    """Everything that a page shows.

    Parameters
    ----------
    title : str
    evaluation : Evaluation
    how : str
        How the figures were obtained, in a sentence.
    facts : mapping of words to values
    picture : bytes of a PNG, optional
    commands : lines to type, optional
    """

    title: str
    evaluation: Evaluation
    how: str
    facts: Mapping[str, object] = field(default_factory=dict)
    picture: bytes | None = None
    commands: tuple[str, ...] = ()


def to_html(report: Report) -> str:
    """The page as text; whatever comes from data is escaped.

    >>> from calibrant.metrics import evaluate
    >>> e = evaluate([0, 1], [0.2, 0.9])
    >>> "&lt;b&gt;" in to_html(Report("<b>", e, "On all rows."))
    True
    """
    jinja2 = import_extra("jinja2", extra="cli")
    template = jinja2.Environment(autoescape=True).from_string(PAGE)
    picture = base64.b64encode(report.picture).decode("ascii") if report.picture else ""
    page: str = template.render(
        report=report,
        words=in_words(report.evaluation),
        table=jinja2.utils.markupsafe.Markup(report.evaluation._repr_html_()),
        picture=picture,
    )
    return page


PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ report.title }}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 2rem auto;
  max-width: 66rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.lead { font-size: 1.1rem; margin: .5rem 0; }
.how, .below, dt { color: #666; }
.both { display: flex; flex-wrap: wrap; gap: 2rem; align-items: flex-start; }
.both > .table { flex: 1 1 30rem; max-width: 40rem; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; border-bottom: 1px solid #ddd; white-space: nowrap; }
table + div { color: #666; font-size: .85rem; margin-top: .6rem; }
img { max-width: 100%; height: auto; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: 0; }
dd { margin: 0; overflow-wrap: anywhere; }
pre { background: #f5f5f5; padding: .8rem 1rem; overflow-x: auto; border-radius: 4px; }
</style>
</head>
<body>
<h1>{{ report.title }}</h1>
<p class="lead">{{ words }}</p>
<p class="how">{{ report.how }}</p>
<div class="both">
<div class="table">{{ table }}</div>
{% if picture %}<div><img alt="Reliability diagram: predicted probability against the fraction of \
positives" src="data:image/png;base64,{{ picture }}"></div>
{% endif %}</div>
{% if report.facts %}<h2>About this calibrator</h2>
<dl>{% for name, value in report.facts.items() %}
<dt>{{ name }}</dt><dd>{{ value }}</dd>{% endfor %}
</dl>
{% endif %}{% if report.commands %}<h2>Use it</h2>
<pre>{% for line in report.commands %}{{ line }}
{% endfor %}</pre>
{% endif %}</body>
</html>
"""
