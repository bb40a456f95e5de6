"""What came of a fit: the calibrator, how it does on rows it has not seen, and what shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from calibrant.cli.first_words import names_of
from calibrant.cli.reading import file_facts
from calibrant.cli.showing import draw, page_of
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.metrics import Evaluation, MulticlassEvaluation
from calibrant.metrics.class_look import ClassLook
from calibrant.metrics.evaluation_results import without_praise
from calibrant.metrics.first_look import FirstLook, first_look
from calibrant.result_tables import shown_percent

if TYPE_CHECKING:
    from calibrant.advice import Advice
    from calibrant.reports.report_value import Report


@dataclass(frozen=True)
class FitResult:
    """A fitted calibrator, and how it does on rows it has not seen.

    ``read`` is what it was fitted to. ``evaluation``, and the tables ``before`` and ``after`` that
    it compares, are None where nothing could be held out.
    """

    #: what the diagram shows, where that must be said
    diagram_title: ClassVar[str] = ""
    #: why there is no estimate for new rows
    too_few_words: ClassVar[str] = "A class has no second row: there is no estimate for new rows."

    fitted: Fitted
    read: Any
    calibrator: Any
    advice: tuple[Advice, ...]
    folds: int
    evaluation: Evaluation | MulticlassEvaluation | None = None
    before: ScoreTable | None = None
    after: ScoreTable | None = None

    @property
    def segments(self) -> tuple[Any, ...]:
        """What became of each segment, if there are some."""
        found: tuple[Any, ...] = getattr(self.calibrator, "segments_", ())
        return found

    @property
    def verdict(self) -> str | None:
        """The automatic choice in words, if there was one."""
        if not hasattr(self.calibrator, "explain"):
            return None
        said: str = self.calibrator.explain(names=self.names)
        return said

    @cached_property
    def look(self) -> FirstLook | ClassLook:
        """What the scores themselves show."""
        return first_look(self.read.table)

    @property
    def names(self) -> Any:
        """How words name the labels: `LabelNames`, or `ClassNames` of several classes."""
        return names_of(file_facts(self.read))

    @property
    def shown_evaluation(self) -> Any:
        """The evaluation without what was said before it."""
        evaluation: Any = self.evaluation
        found = replace(evaluation, look=None)
        return without_praise(found) if self.look.unproven else found

    @property
    def sizes(self) -> str:
        """The classes and the scores, in words."""
        table = self.read.table
        share = shown_percent(table.total_positive / table.total)
        scores = f"{len(table):,} distinct scores."
        if table.made:
            moved = f"no score was moved by more than {table.error:.2g}"
            scores = f"{len(table):,} of {table.made}; {moved}."
        return f"{share} are {self.fitted.pos_label!r}, {scores}"

    def picture(self, format: str) -> bytes:
        """The reliability diagram of rows held out."""
        if self.after is None:
            raise InputError("a plot needs at least two rows of each class.")
        shown = None if "feature_columns" in self.read.facts else self.fitted
        return draw(self.after, self.before, format=format, fitted_map=shown)

    def page(self, saved_as: Path | None) -> Report:
        """The page on the fit."""
        return page_of(self.calibrator, self.read, saved_as=saved_as)
