"""What `calibrant.boosting` shows; `lazy_names` reads it."""

from calibrant.boosting.adaboost import AdaBoost as AdaBoost
from calibrant.boosting.score import boosting_score as boosting_score
