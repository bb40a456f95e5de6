"""Softmax of scaled logits: temperature, vector, matrix, Dirichlet and structured scaling."""
