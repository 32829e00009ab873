"""FairLogisticClassifier among scikit-learn's tools: checks, pipelines, searches."""

from fairconstrained import DemographicParity, FairLogisticClassifier, make_biased_classification
from fairconstrained.solvers import IPC, AugmentedLagrangian

X, Y, GROUPS = make_biased_classification(300, 5, gap=0.4, random_state=0)


def test_fit_changes_no_object():
    constraint, solver = DemographicParity(), IPC(AugmentedLagrangian(max_inner=500))
    said = repr((constraint, solver))
    classifier = FairLogisticClassifier(constraint, kappa=0.3, solver=solver, max_iter=7)
    classifier.fit(X, Y, sensitive_features=GROUPS)
    assert repr((constraint, solver)) == said and constraint.kappa is None
    assert classifier.result_.solver.max_iter == 7


def test_verbose_prints_a_line_per_outer_iteration(capsys):
    FairLogisticClassifier(kappa=0.02).fit(X, Y, sensitive_features=GROUPS)
    assert capsys.readouterr().out == ""
    classifier = FairLogisticClassifier(kappa=0.02, verbose=1).fit(X, Y, sensitive_features=GROUPS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == classifier.n_iter_ == len(classifier.result_.trace)
    assert lines[-1].startswith(f"[FairLogisticClassifier] iteration {classifier.n_iter_}: ")
    for word in ("objective", "violation", "KKT residual"):
        assert word in lines[0]
