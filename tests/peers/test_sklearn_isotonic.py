"""scikit-learn's own tests of isotonic regression, with our classes in place of theirs."""

from __future__ import annotations

import pytest

from sklearn_names import own_tests

#: why some of them fail, by reason
FAILURES = {
    'increasing="auto" warns where so few rows do not settle it': (
        "test_check_increasing_up",
        "test_check_increasing_up_extreme",
        "test_check_increasing_down",
        "test_check_increasing_down_extreme",
    ),
    "it warns, too, in other words": ("test_check_ci_warn",),
    "moved to [0, 1] and back, as these names do, values differ in the last bit": (
        "test_isotonic_regression",
        "test_isotonic_sample_weight",
        "test_isotonic_ymin_ymax",
    ),
    "refused, too, in other words": (
        "test_assert_raises_exceptions",
        "test_isotonic_2darray_more_than_1_feature",
    ),
    "beyond the scores of the fit a map goes on as it ends; out_of_bounds is unknown": (
        "test_isotonic_regression_oob_raise",
        "test_isotonic_regression_oob_nan",
    ),
    "probabilities are float64, whatever came": (
        "test_isotonic_dtype[float32]",
        "test_isotonic_mismatched_dtype",
    ),
    "a helper of scikit-learn's own, which no class of ours has": (
        "test_fast_predict",
        "test_make_unique_dtype",
        "test_make_unique_tolerance",
    ),
    "the column of transform is called probability, and is made by cal.Isotonic itself": (
        "test_get_feature_names_out",
        "test_isotonic_regression_output_predict",
    ),
}

pytestmark = pytest.mark.filterwarnings("ignore")
globals().update(own_tests("test_isotonic"))


def test_failures_name_tests_that_exist():
    named = {name.partition("[")[0] for names in FAILURES.values() for name in names}
    assert named <= globals().keys()
