"""Data files by name, before any engine reads them: which there are, their columns and labels."""
