"""What `calibrant.diagrams` shows; `lazy_names` reads it."""

from calibrant.diagrams.curve import Curve as Curve
from calibrant.diagrams.curve import Panels as Panels
from calibrant.diagrams.curve import map_curve as map_curve
from calibrant.diagrams.curve import reliability_curve as reliability_curve
from calibrant.diagrams.decision import DecisionCurve as DecisionCurve
from calibrant.diagrams.decision import decision_curve as decision_curve
from calibrant.diagrams.draw.others import (
    critical_difference_diagram as critical_difference_diagram,
)
from calibrant.diagrams.draw.others import decision_diagram as decision_diagram
from calibrant.diagrams.draw.others import grade_diagram as grade_diagram
from calibrant.diagrams.draw.others import group_diagram as group_diagram
from calibrant.diagrams.draw.others import learning_diagram as learning_diagram
from calibrant.diagrams.draw.others import map_diagram as map_diagram
from calibrant.diagrams.draw.others import monitor_diagram as monitor_diagram
from calibrant.diagrams.draw.reliability import ReliabilityDisplay as ReliabilityDisplay
from calibrant.diagrams.draw.reliability import class_diagram as class_diagram
from calibrant.diagrams.draw.reliability import panel_diagram as panel_diagram
from calibrant.diagrams.draw.reliability import reliability_diagram as reliability_diagram
from calibrant.diagrams.learning import LearningCurve as LearningCurve
from calibrant.diagrams.learning import learning_curve as learning_curve
from calibrant.diagrams.panels import Segments as Segments
from calibrant.diagrams.panels import boosting_panels as boosting_panels
from calibrant.diagrams.panels import class_reliability as class_reliability
from calibrant.diagrams.panels import reliability_panels as reliability_panels
from calibrant.diagrams.panels import reliability_segments as reliability_segments
