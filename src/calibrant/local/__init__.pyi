"""What `calibrant.local` shows; `lazy_names` reads it."""

from calibrant.fitting.fitted import LocalFitted as LocalFitted
from calibrant.methods.acp.intervals import PredictionInterval as PredictionInterval
