"""What a calibration did, in words and as a page for people."""

from calibrant.reports.making import report, report_of
from calibrant.reports.value import Method, Panel, Recipe, Report
from calibrant.reports.words import in_words

__all__ = ["Method", "Panel", "Recipe", "Report", "in_words", "report", "report_of"]
