"""What `calibrant.local` shows; `lazy_names` reads it."""

from calibrant.local.intervals import PredictionInterval as PredictionInterval
from calibrant.local.rule import LocalFitted as LocalFitted
