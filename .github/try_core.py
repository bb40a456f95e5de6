"""What must work after `pip install calibrant`, without any extra. Run it outside of the source."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile

import calibrant as cal

calibrator = cal.BLS().fit([0.1, 0.4, 0.35, 0.8, 0.6, 0.9], ["no", "no", "yes", "yes", "no", "yes"])
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "calibrator.json"
    cal.save(calibrator, file)
    again = cal.load(file).calibrate([0.2, 0.7])
assert (again == calibrator.calibrate([0.2, 0.7])).all()
assert "CASE" in cal.to_sql(cal.Isotonic().fit([0.1, 0.4, 0.6], [0, 1, 1]), dialect="postgres")
try:
    cal.reliability_diagram([0, 1], [0.2, 0.7])
except cal.errors.MissingExtraError as missing:
    print("said:", missing)
else:
    raise AssertionError("matplotlib is here: this environment has extras")
done = subprocess.run(
    [sys.executable, "-c", "from calibrant.cli import main; main(['--help'])"],
    capture_output=True,
    text=True,
    check=False,
)
assert (done.returncode, "calibrant[cli]" in done.stderr) == (2, True), done
print("calibrant", cal.__version__, "works without extras")
