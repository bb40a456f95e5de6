"""Rules: what a fit gives. Frozen functions of scores, saved, loaded, exported, applied."""
