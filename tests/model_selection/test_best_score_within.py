"""The choice of the best model within a limit on its gap."""

import numpy as np
import pytest

from fairconstrained import best_score_within

GAPS = np.array([-0.3, -0.04, -0.02, -0.01])
RATIOS = np.array([0.3, 0.81, 0.9, 0.99])


def results(gaps=GAPS):
    return {"mean_test_accuracy": np.array([0.9, 0.8, 0.8, np.nan]), "mean_test_gap": gaps}


@pytest.mark.cases(5)
@pytest.mark.parametrize(
    ("limit", "options", "gaps", "best"),
    [
        (0.5, {}, GAPS, 0),
        (0.05, {}, GAPS, 2),  # of equals the fairer one
        (0.05, {}, -GAPS, 2),  # the sign does not matter
        (0.8, {"at_least": True}, RATIOS, 2),
        (0.2, {"at_least": True}, RATIOS, 0),
    ],
)
def test_the_best_within_the_limit(limit, options, gaps, best):
    assert best_score_within("gap", limit, **options)(results(gaps)) == best


def test_no_candidate_within_the_limit():
    with pytest.warns(UserWarning, match="no candidate has a mean gap of at most 0.001"):
        assert best_score_within("gap", 0.001)(results()) == 3
    with pytest.warns(UserWarning, match="no candidate has a mean gap of at least 0.999"):
        assert best_score_within("gap", 0.999, at_least=True)(results(RATIOS)) == 3


def test_messages():
    with pytest.raises(ValueError, match=r"no score 'dp'; it has \['accuracy', 'gap'\]"):
        best_score_within("dp", 0.1)(results())
    with pytest.raises(ValueError, match="'limit' parameter of best_score_within"):
        best_score_within("gap", -0.1)
    with pytest.raises(ValueError, match="nan for all candidates"):
        best_score_within("gap", 0.1)(results(np.full(4, np.nan)))
    expected = "best_score_within('gap', 0.1, score='accuracy')"
    assert repr(best_score_within("gap", 0.1)) == expected
