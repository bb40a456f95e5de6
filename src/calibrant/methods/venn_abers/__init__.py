"""Venn-Abers: two isotonic fits for every score, one for each label it may have."""
