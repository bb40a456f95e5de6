"""Bins: the histogram, the average over all binnings (ABB), BBQ, and the best one found (SBB)."""
