"""Out-of-fold tables and scores, for everyone who cross-validates."""
