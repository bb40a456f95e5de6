"""What `calibrant.data` shows; `lazy_names` reads it."""

from calibrant.data.scale import ScoreRange as ScoreRange
from calibrant.data.score_matrix import ScoreMatrix as ScoreMatrix
from calibrant.data.score_table import ScoreTable as ScoreTable
