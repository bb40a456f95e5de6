"""Plans: what a map becomes for every other system, a small graph of shared nodes."""
