"""What `calibrant.boosting` shows; `lazy_names` reads it."""

from calibrant.methods.boosting import AdaBoost as AdaBoost
from calibrant.methods.boosting import boosting_score as boosting_score
