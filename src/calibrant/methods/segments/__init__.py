"""SegmentedCalibrator: a map for each segment, shrunk to the map of all rows."""
