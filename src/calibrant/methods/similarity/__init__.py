"""Similarity-binning averaging: a bin for every row, made of the rows most like it."""
