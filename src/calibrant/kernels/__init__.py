"""Bare functions on float64 arrays: no NaN, no None, none of our classes."""
