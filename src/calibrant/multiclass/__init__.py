"""Several classes by way of yes-or-no questions: codes, and how to combine their answers."""

from calibrant.methods.codes.codes import (
    Code,
    all_pairs,
    coupling,
    ecoc,
    least_squares,
    normalize,
    one_vs_rest,
    pairwise,
    read_code,
)

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
