"""What every calibrator is built on: the base, the fitted value, limits, names and folds."""
