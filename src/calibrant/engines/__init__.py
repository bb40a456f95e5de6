"""Where large data live: files and databases become score tables, and maps become columns there."""
