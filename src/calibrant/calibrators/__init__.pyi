"""What `calibrant.calibrators` shows; `lazy_names` reads it."""

from calibrant.calibrators.enir import NearIsotonicPath as NearIsotonicPath
from calibrant.calibrators.enir import near_isotonic_path as near_isotonic_path
