"""Plans: a rule as a graph of simple steps, which the interpreter computes and printers write."""
