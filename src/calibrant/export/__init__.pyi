"""What `calibrant.export` shows; `lazy_names` reads it."""

from calibrant.export.attributions import Attributions as Attributions
from calibrant.export.skops import skops_types as skops_types
from calibrant.export.sql import Sql as Sql
