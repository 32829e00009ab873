"""scikit-learn's checks of estimators."""

import pytest
from _support.boosting import small
from _support.columns import first_above_half, first_above_zero
from _support.sklearn_checks import excused_of_weights, failed_checks

FEW_ROWS = {"n_estimators": 10, "min_child_samples": 2, "reg_lambda": 0.1}
CHECKED = {
    "unconstrained": small(None, **FEW_ROWS),
    "first > 0.5": small(sensitive_columns=first_above_half, **FEW_ROWS),
    "equalized odds": small("equalized_odds", sensitive_columns=first_above_zero, **FEW_ROWS),
}
EXPECTED = excused_of_weights(
    "LightGBM's bins and the least number of rows in a leaf count rows, not weights"
)


# Some checks cast NaN to integers; in others all rows are in one group.
@pytest.mark.cases(1)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::fairconstrained.VacuousConstraintWarning")
@pytest.mark.parametrize("name", CHECKED)
def test_check_estimator(name):
    assert failed_checks(CHECKED[name], EXPECTED) == []
