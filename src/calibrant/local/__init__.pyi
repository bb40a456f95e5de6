"""What `calibrant.local` shows; `lazy_names` reads it."""

from calibrant.methods.acp.intervals import PredictionInterval as PredictionInterval
