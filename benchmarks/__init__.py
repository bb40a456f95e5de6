"""Measurements, run by hand: ``python -m benchmarks``. Results are in ``benchmarks/results``."""
