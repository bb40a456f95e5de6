"""Smooth maps on the logit scale: one penalised spline, and the Bayesian average of many (BLS)."""
