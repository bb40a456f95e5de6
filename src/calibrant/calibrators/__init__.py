"""One file per method; the public names are those of the package."""
