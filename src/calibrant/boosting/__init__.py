"""Boosting whose scores are known: F, the raw prediction, and the probability of its own loss."""
