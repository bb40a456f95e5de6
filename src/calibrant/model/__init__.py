"""A model and its calibrator as one classifier."""
