"""What a calibration did, in words and as a page for people."""

from calibrant.report.html import Report, to_html
from calibrant.report.words import in_words

__all__ = ["Report", "in_words", "to_html"]
