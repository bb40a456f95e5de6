"""What `calibrant.reports` shows; `lazy_names` reads it."""

from calibrant.reports.monitor_page import MonitorReport as MonitorReport
from calibrant.reports.page import Report as Report
