"""Several classes by way of yes-or-no questions: codes, and how to combine their answers."""

from calibrant.multiclass.codes import Code, all_pairs, ecoc, one_vs_rest, read_code
from calibrant.multiclass.combine import coupling, least_squares, normalize, pairwise

__all__ = [
    "Code",
    "all_pairs",
    "coupling",
    "ecoc",
    "least_squares",
    "normalize",
    "one_vs_rest",
    "pairwise",
    "read_code",
]
