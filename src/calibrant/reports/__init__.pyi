"""What `calibrant.reports` shows; `lazy_names` reads it."""

from calibrant.reports.monitor_value import MonitorReport as MonitorReport
from calibrant.reports.report_value import Report as Report
