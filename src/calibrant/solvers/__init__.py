"""What several methods solve with: Newton's method, softmax fits, splines, knots, threads."""
