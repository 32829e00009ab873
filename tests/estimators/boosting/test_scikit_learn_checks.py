"""scikit-learn's checks of estimators."""

import pytest
from _support.boosting import small
from _support.columns import first_above_half, first_above_zero
from sklearn.utils.estimator_checks import check_estimator

FEW_ROWS = {"n_estimators": 10, "min_child_samples": 2, "reg_lambda": 0.1}
CHECKED = {
    "unconstrained": small(None, **FEW_ROWS),
    "first > 0.5": small(sensitive_columns=first_above_half, **FEW_ROWS),
    "equalized odds": small("equalized_odds", sensitive_columns=first_above_zero, **FEW_ROWS),
}
COUNTS = "LightGBM's bins and the least number of rows in a leaf count rows, not weights"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": COUNTS,
    "check_sample_weight_equivalence_on_sparse_data": COUNTS,
}


# Some checks cast NaN to integers; in others all rows are in one group.
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::fairconstrained.VacuousConstraintWarning")
@pytest.mark.parametrize("name", CHECKED)
def test_check_estimator(name):
    outcomes = check_estimator(
        CHECKED[name], on_skip=None, on_fail=None, expected_failed_checks=EXPECTED
    )
    assert len(outcomes) > 50
    assert [one for one in outcomes if one["status"] not in ("passed", "xfail")] == []
