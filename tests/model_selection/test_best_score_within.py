"""The choice of the best model within a limit on its gap."""

from typing import ClassVar

import numpy as np
import pytest

from fairconstrained import best_score_within


class TestBestScoreWithin:
    results: ClassVar = {
        "mean_test_accuracy": np.array([0.9, 0.8, 0.8, np.nan]),
        "mean_test_gap": np.array([-0.3, -0.04, -0.02, -0.01]),
    }

    def test_the_best_within_the_limit(self):
        assert best_score_within("gap", 0.5)(self.results) == 0
        assert best_score_within("gap", 0.05)(self.results) == 2, "of equals the fairer one"

    def test_the_sign_does_not_matter(self):
        plain = {**self.results, "mean_test_gap": -self.results["mean_test_gap"]}
        assert best_score_within("gap", 0.05)(plain) == 2

    def test_ratios_are_to_be_at_least_the_limit(self):
        ratios = {**self.results, "mean_test_gap": np.array([0.3, 0.81, 0.9, 0.99])}
        assert best_score_within("gap", 0.8, at_least=True)(ratios) == 2
        assert best_score_within("gap", 0.2, at_least=True)(ratios) == 0
        with pytest.warns(UserWarning, match="no candidate has a mean gap of at least 0.999"):
            assert best_score_within("gap", 0.999, at_least=True)(ratios) == 3

    def test_no_candidate_within_the_limit(self):
        with pytest.warns(UserWarning, match="no candidate has a mean gap of at most 0.001"):
            assert best_score_within("gap", 0.001)(self.results) == 3

    def test_messages(self):
        with pytest.raises(ValueError, match=r"no score 'dp'; it has \['accuracy', 'gap'\]"):
            best_score_within("dp", 0.1)(self.results)
        with pytest.raises(ValueError, match="'limit' parameter of best_score_within"):
            best_score_within("gap", -0.1)
        nothing = {**self.results, "mean_test_gap": np.full(4, np.nan)}
        with pytest.raises(ValueError, match="nan for all candidates"):
            best_score_within("gap", 0.1)(nothing)
        assert repr(best_score_within("gap", 0.1)) == (
            "best_score_within('gap', 0.1, score='accuracy')"
        )
