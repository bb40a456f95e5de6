"""ENIR and ELiTE: ensembles along the path of near-isotonic steps and of broken lines."""
