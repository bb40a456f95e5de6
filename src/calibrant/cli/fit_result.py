"""What came of a fit: the calibrator, how it does on rows it has not seen, and what shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.cli.first_words import names_of
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.metrics.class_look import ClassLook, ClassNames
from calibrant.metrics.evaluation_results import without_praise
from calibrant.metrics.first_look import FirstLook, LabelNames, first_look
from calibrant.result_tables import shown_percent

if TYPE_CHECKING:
    from calibrant.advice import Advice
    from calibrant.metrics import Evaluation, MulticlassEvaluation
    from calibrant.reports.report_value import Report


@dataclass(frozen=True)
class FitResult:
    """A fitted calibrator, and how it does on rows it has not seen.

    ``read`` is what it was fitted to. ``evaluation``, and the tables ``before`` and ``after`` that
    it compares, are None where nothing could be held out.
    """

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
    def look(self) -> FirstLook | ClassLook | None:
        """What the scores themselves show."""
        return first_look(self.read.table)

    @property
    def names(self) -> LabelNames | ClassNames:
        """How words name the labels."""
        return names_of(self.read)

    @property
    def shown_evaluation(self) -> Any:
        """The evaluation without what was said before it."""
        found: Any = self.evaluation
        if found is None:
            return None
        found = replace(found, look=None)
        return without_praise(found) if self.look is not None and self.look.unproven else found

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

    @property
    def diagram_title(self) -> str:
        """What the diagram shows, where that must be said."""
        return ""

    @property
    def too_few_words(self) -> str:
        """Why there is no estimate for new rows."""
        return "A class has no second row: there is no estimate for new rows."

    def picture(self, format: str) -> bytes:
        """The reliability diagram of rows held out."""
        if self.after is None:
            raise InputError("a plot needs at least two rows of each class.")
        from calibrant.cli.jobs import draw

        return draw(self.after, self.before, format=format, fitted_map=self.fitted)

    def page(self, saved_as: Path | None) -> Report:
        """The page on the fit."""
        from calibrant.cli.jobs import page_of

        return page_of(self.calibrator, self.read, saved_as=saved_as)
