"""One map per segment, shrunk to the map of all rows."""

from calibrant.segment.calibrator import SegmentedCalibrator
from calibrant.segment.column_fit import Segment
from calibrant.segment.shrink import ShrinkageTrial

__all__ = ["Segment", "SegmentedCalibrator", "ShrinkageTrial"]
