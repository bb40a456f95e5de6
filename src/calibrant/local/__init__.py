"""Calibrators that see more of a row than its score: its attributes, or its interval."""
