"""FeatureCalibrator: small trees that correct the calibrated logit by columns of the row."""
