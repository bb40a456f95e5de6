"""What all calibrators share: the base, the fitted value and its files, limits, names and folds."""
