"""Several classes as yes-or-no questions: codes, the calibrator of coded columns, other views."""
