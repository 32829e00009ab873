"""FairNetworkClassifier: every constraint, certificates, scikit-learn's tools, export."""

import warnings

import numpy as np
import pytest
from _support.certificates import residual
from _support.classifiers import quietly
from numpy.testing import assert_allclose
from sklearn.base import clone

import fairconstrained as fc
from fairconstrained.solvers.base import Iterate

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


X, Y, GROUPS = fc.make_biased_classification(400, 5, gap=0.4, class_sep=2.0, random_state=0)
TINY = {"hidden_layer_sizes": (6,), "max_epochs": 60, "random_state": 0}
EXPECTED = (fc.ConvergenceWarning, fc.InfeasibleConstraintWarning)


def fitted(constraint="demographic_parity", *, rows=slice(None), **options):
    """Return a fitted network and the warnings of the fit."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        clf = fc.FairNetworkClassifier(constraint, **{**TINY, **options})
        clf.fit(X[rows], Y[rows], sensitive_features=GROUPS[rows])
    return clf, [one for one in found if issubclass(one.category, EXPECTED)]


@pytest.fixture(scope="module")
def clf():
    return fitted(early_stopping=True)[0]


@pytest.mark.cases(2)
@pytest.mark.parametrize("early_stopping", [True, False])
@pytest.mark.parametrize("constraint", fc.constraints.CLASSIFIER_CONSTRAINTS)
def test_every_constraint_holds_or_a_warning_gives_the_figures(constraint, early_stopping):
    free, _ = fitted(None, early_stopping=early_stopping)
    clf, found = fitted(constraint, early_stopping=early_stopping)
    assert np.isfinite([clf.objective_, clf.violation_, clf.kkt_residual_, clf.gap_]).all()
    assert np.isfinite(clf.decision_function(X)).all()
    assert clf.objective_ <= 1.0
    assert clf.objective_ != free.objective_
    if clf.violation_ > 1e-4:
        assert f"{clf.violation_:.3g}" in str(found[0].message)


OF_BATCHES = ["plada", "3s-econ", "ssg"]
SOLVERS = OF_BATCHES + [f"{name}-stochastic" for name in OF_BATCHES]
SOLVERS += ["lagrangian", "multiplier-model", "augmented-lagrangian", fc.solvers.PLADA.network()]


@pytest.mark.cases(2)
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_solvers_of_the_library_train_networks(solver):
    clf, _ = fitted(solver=solver, early_stopping=True, max_epochs=100)
    free, _ = fitted(kappa=1.0, early_stopping=True)
    assert clf.violation_ <= 1e-3
    assert clf.objective_ < 0.68  # constant scores have log 2
    assert clf.gap_ <= 0.05 + 1e-3 < free.gap_


def test_results_do_not_depend_on_units_or_on_the_generator_of_pytorch(clf):
    torch.manual_seed(7)
    scaled = X * [1e3, 1.0, 1e-4, 5.0, 2.0]
    again = quietly(clone(clf).fit, scaled, Y, sensitive_features=GROUPS)
    scores = again.decision_function(scaled)
    assert_allclose(scores, clf.decision_function(X), atol=1e-5)


def test_validation_rows_choose_a_feasible_iterate(clf):
    assert clf.result_.status.value == "chosen on validation rows"
    assert clf.violation_ <= clf.tol
    longer, _ = fitted(early_stopping=True, max_epochs=1000, n_iter_no_change=30)
    trace = longer.result_.trace.to_frame()
    assert trace.data_passes.max() < 900  # stopped
    chosen = trace[trace.iteration == longer.n_iter_].iloc[0]
    assert chosen.violation <= longer.tol
    assert chosen.objective > trace.objective.min()  # not the least training loss


def test_decisions_of_networks_without_a_last_layer():
    class Sum(torch.nn.Module):
        def __init__(self, n):
            super().__init__()
            self.one, self.two = torch.nn.Linear(n, 1), torch.nn.Linear(n, 1)

        def forward(self, X):
            return self.one(X) + torch.tanh(self.two(X))

    clf, _ = fitted(kappa=0.05, enforce="decision", module=Sum, early_stopping=False)
    assert clf.decision_search_.met and clf.decision_gap_ <= 0.05 + 1e-12


def test_decisions_with_constraints_that_have_variables_of_their_own():
    clf, _ = fitted("partial_dp", kappa=0.1, enforce="decision", early_stopping=False)
    assert clf.decision_search_.met and clf.decision_gap_ <= 0.1 + 1e-12


def test_training_that_diverges_is_no_worse_than_a_constant():
    X, y, _ = fc.make_biased_classification(1500, 5, random_state=0)
    groups = np.random.default_rng(0).integers(0, 40, 1500)
    clf = fc.FairNetworkClassifier(kappa=0.05, random_state=0, max_epochs=10, learning_rate=30.0)
    with pytest.warns(fc.ConvergenceWarning, match="hidden layers that training began with"):
        clf.fit(X, y, sensitive_features=groups)
    assert clf.violation_ <= 1e-4 and clf.objective_ <= np.log(2.0)


def test_least_unfairness_for_a_bound_on_the_loss():
    free, _ = fitted(None, early_stopping=False)
    clf, _ = fitted(goal="fairness", max_loss_increase=0.1, early_stopping=False)
    with_gap, _ = fitted(kappa=1.0, early_stopping=False)
    assert clf.objective_ <= 1.1 * free.objective_ + 1e-3
    assert clf.gap_ < with_gap.gap_


def test_warm_starts_go_on_from_the_weights():
    clf, found = fitted(early_stopping=False, max_epochs=40)
    assert "Raise tol, max_epochs of a network" in str(found[0].message)
    objective = clf.objective_
    quietly(clf.set_params(warm_start=True).fit, X, Y, sensitive_features=GROUPS)
    assert clf.objective_ < objective


def test_diverging_steps_are_reported_and_scores_are_finite():
    clf, found = fitted(solver="lagrangian", learning_rate=1e6, early_stopping=False)
    assert np.isfinite(clf.decision_function(X)).all()
    assert np.isfinite([clf.objective_, clf.violation_, clf.kkt_residual_]).all()
    assert found


def test_options_that_a_solver_does_not_take():
    assert fitted(batch_size=20, solver="plada")[0].violation_ <= 1e-3
    with pytest.raises(ValueError, match="batch_size=20 is given"):
        fitted(batch_size=20, solver="augmented-lagrangian")
    with pytest.raises(ValueError, match=r"learning_rate=0.1 is given"):
        fitted(learning_rate=0.1, solver="3s-econ")


class StaysAtTheStart(fc.solvers.Solver):
    """A method whose first iterate is the start."""

    def __init__(self, max_iter=1, tol=1e-4):
        self.max_iter, self.tol = max_iter, tol

    def iterate(self, problem, start):
        yield Iterate(problem.at(start.w), None, 0)


def test_a_start_that_is_chosen_says_what_that_means(clf):
    start, _ = fitted(early_stopping=True, solver=StaysAtTheStart())
    assert start.n_iter_ == 0
    for text in (start.result_.message, str(start.result_)):
        assert "after 0 iterations" in text and "The weights are those of the start" in text
    assert "those of the start" not in clf.result_.message


@pytest.mark.parametrize("name", fc.constraints.CLASSIFIER_CONSTRAINTS)
def test_slopes_are_differences_of_values_that_pytorch_computes(name):
    constraint = fc.BoundedGroupLoss(0.5) if name == "bounded_group_loss" else name
    options = {"hidden_layer_sizes": (4,), "activation": "tanh", "alpha": 1e-3}
    clf, _ = fitted(constraint, kappa=0.05, early_stopping=False, **options)
    parts = clf.bind(X, Y, None, GROUPS).problem.constraints
    network, rows = clf.to_torch(), torch.tensor(X)
    weights = [one for one in network.parameters() if one.dim() == 2]
    first = torch.nn.utils.parameters_to_vector(network.parameters()).detach().numpy()
    own, n = clf.result_.w[len(first) :], len(first)
    signs = np.where(clf.classes_[1] == Y, 1.0, -1.0)

    def at(w):
        torch.nn.utils.vector_to_parameters(torch.tensor(w[:n]), network.parameters())
        with torch.no_grad():
            scores = network(rows).numpy().ravel()
            squares = sum(float((one**2).sum()) for one in weights)
        loss = np.logaddexp(0.0, -signs * scores).mean() + 0.5 * clf.alpha * squares
        gaps = [part.term.value(scores, w[part.auxiliary]) for part in parts]
        return scores, loss, np.concatenate(gaps)

    w = np.append(first, own)
    scores, loss, gaps = at(w)
    expected = residual(clf.multipliers_, lambda w: at(w)[1:], w, 1e-6)
    assert_allclose(scores, clf.decision_function(X), atol=1e-9)
    assert loss == pytest.approx(clf.objective_, rel=1e-8)
    assert max(0.0, gaps.max()) == pytest.approx(clf.violation_, abs=1e-8)
    assert clf.kkt_residual_ == pytest.approx(expected, rel=1e-2, abs=1e-6)
