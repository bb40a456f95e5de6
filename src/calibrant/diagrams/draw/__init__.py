"""Drawing, the only room that knows matplotlib. It reads curves and lays them out, no more."""

from calibrant.diagrams.draw.figures import render
from calibrant.diagrams.draw.others import (
    decision_diagram,
    grade_diagram,
    group_diagram,
    learning_diagram,
    map_diagram,
    monitor_diagram,
)
from calibrant.diagrams.draw.reliability import panel_diagram, reliability_diagram

__all__ = [
    "decision_diagram",
    "grade_diagram",
    "group_diagram",
    "learning_diagram",
    "map_diagram",
    "monitor_diagram",
    "panel_diagram",
    "reliability_diagram",
    "render",
]
