"""Solvers of smooth problems on problems with kinks: the first width, many constraints."""

import pytest

from fairconstrained import FairHingeClassifier, make_biased_classification
from fairconstrained.solvers import AugmentedLagrangian, Smoothing

X, Y, GROUPS = make_biased_classification(2000, gap=0.3, random_state=0)


def fairest(constraint, solver, increase=0.003):
    """Return the result of the least unfairness for a hinge loss near the least one."""
    clf = FairHingeClassifier(
        constraint, goal="fairness", max_loss_increase=increase, solver=solver
    )
    return clf.fit(X, Y, sensitive_features=GROUPS).result_


@pytest.mark.cases(1)
@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds", "roc_parity"])
def test_the_first_width_leaves_a_bound_on_the_loss_feasible(constraint, monkeypatch):
    """Wide arcs raise the hinge loss above a bound that is 0.3% above the least loss."""
    result = fairest(constraint, Smoothing(AugmentedLagrangian()))
    monkeypatch.setattr(Smoothing, "_first_width", lambda self, problem, start: self.width)
    wide = fairest(constraint, Smoothing(AugmentedLagrangian()))
    assert result.converged and wide.converged
    assert result.objective == pytest.approx(wide.objective, rel=1e-3)
    assert result.data_passes < 0.7 * wide.data_passes


def test_many_constraints_need_few_data_passes():
    result = fairest("roc_parity", "auto")
    other = fairest("roc_parity", Smoothing(AugmentedLagrangian()))
    assert result.converged and other.converged
    assert result.objective == pytest.approx(other.objective, rel=1e-3)
    assert result.data_passes < 0.6 * other.data_passes
