"""Readers of retired format versions. None has been retired yet."""
