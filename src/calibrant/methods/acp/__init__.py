"""ACP: the probability of a row from the interval around the model's own."""
