"""One map per segment, shrunk to the map of all rows."""

from calibrant.segment.calibrator import SegmentedCalibrator
from calibrant.segment.records import Segment, ShrinkageTrial

__all__ = ["Segment", "SegmentedCalibrator", "ShrinkageTrial"]
