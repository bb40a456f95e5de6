"""Other base rates: calibrated probabilities and maps moved to them, and estimates of them."""

from calibrant.prior.adjusting import adjust_prior
from calibrant.prior.estimates import RateEstimate, RateEstimates
from calibrant.prior.estimating import estimate_rate, estimate_rates

__all__ = ["RateEstimate", "RateEstimates", "adjust_prior", "estimate_rate", "estimate_rates"]
