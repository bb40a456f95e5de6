"""Kernels of what only the papers need: see `calibrant.paper_variants`."""
