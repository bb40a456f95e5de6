"""Drawing, the only room that knows matplotlib. It reads curves and lays them out, no more."""

from calibrant.diagrams.draw.decision import decision_diagram
from calibrant.diagrams.draw.figures import render
from calibrant.diagrams.draw.groups import group_diagram
from calibrant.diagrams.draw.learning import learning_diagram
from calibrant.diagrams.draw.maps import map_diagram
from calibrant.diagrams.draw.monitor import monitor_diagram
from calibrant.diagrams.draw.panels import panel_diagram
from calibrant.diagrams.draw.reliability import reliability_diagram

__all__ = [
    "decision_diagram",
    "group_diagram",
    "learning_diagram",
    "map_diagram",
    "monitor_diagram",
    "panel_diagram",
    "reliability_diagram",
    "render",
]
