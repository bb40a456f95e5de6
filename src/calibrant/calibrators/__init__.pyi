"""What `calibrant.calibrators` shows; `lazy_names` reads it."""

from calibrant.methods.near_isotonic.enir import NearIsotonicPath as NearIsotonicPath
from calibrant.methods.near_isotonic.enir import near_isotonic_path as near_isotonic_path
