"""What `calibrant.monitor` shows; `lazy_names` reads it."""

from calibrant.monitor.drift import ClassDrift as ClassDrift
from calibrant.monitor.drift import Drift as Drift
from calibrant.monitor.drift import check_class_drift as check_class_drift
from calibrant.monitor.drift import check_drift as check_drift
from calibrant.monitor.master_scale import GradeChecks as GradeChecks
from calibrant.monitor.master_scale import MasterScale as MasterScale
from calibrant.monitor.monitor import Monitor as Monitor
from calibrant.monitor.monitor import MonitorReading as MonitorReading
from calibrant.monitor.monitor import SegmentReading as SegmentReading
from calibrant.monitor.prior import MeanShift as MeanShift
from calibrant.monitor.prior import RateEstimate as RateEstimate
from calibrant.monitor.prior import RateEstimates as RateEstimates
from calibrant.monitor.prior import adjust_prior as adjust_prior
from calibrant.monitor.prior import estimate_rate as estimate_rate
from calibrant.monitor.prior import estimate_rates as estimate_rates
from calibrant.monitor.prior import shift_to_mean as shift_to_mean
