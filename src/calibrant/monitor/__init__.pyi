"""What `calibrant.monitor` shows; `lazy_names` reads it."""

from calibrant.monitor.class_drift import ClassDrift as ClassDrift
from calibrant.monitor.class_drift import check_class_drift as check_class_drift
from calibrant.monitor.drift_check import check_drift as check_drift
from calibrant.monitor.drift_value import Drift as Drift
from calibrant.monitor.master_scale import GradeChecks as GradeChecks
from calibrant.monitor.master_scale import MasterScale as MasterScale
from calibrant.monitor.monitor import Monitor as Monitor
from calibrant.monitor.monitor_reading import MonitorReading as MonitorReading
from calibrant.monitor.monitor_reading import SegmentReading as SegmentReading
from calibrant.monitor.prior_adjust import adjust_prior as adjust_prior
from calibrant.monitor.rate_estimating import estimate_rate as estimate_rate
from calibrant.monitor.rate_estimating import estimate_rates as estimate_rates
from calibrant.monitor.rate_values import RateEstimate as RateEstimate
from calibrant.monitor.rate_values import RateEstimates as RateEstimates
