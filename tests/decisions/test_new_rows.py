"""Gaps on new rows: estimates by soft labels, and bounds that hold in the population."""

from itertools import permutations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import fairconstrained as fc
from fairconstrained import constraints
from fairconstrained.data.groups import Groups
from fairconstrained.data.validation import TrainingData, split
from fairconstrained.decisions import candidates
from fairconstrained.decisions.held_out import hold_out
from fairconstrained.decisions.new_rows import SoftLabels, expected_gaps


def drawn(n_rows, seed, n_features=25, share=0.15, small_groups=("small",)):
    """Return rows with small groups, whose labels the many features hardly tell."""
    rng = np.random.default_rng(seed)
    small = rng.random(n_rows) < share
    X = rng.standard_normal((n_rows, n_features))
    X[:, 0] += np.where(small, -0.8, 0.2)
    y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(0.5 - 2.0 * X[:, 0]))).astype(int)
    return X, y, np.where(small, rng.choice(small_groups, n_rows), "large")


def gaps(clf, X, y, groups, constraint):
    """Return the gaps of true and false positive rates, or that of error rates."""
    decided = clf.predict(X)
    events = [y == 1, y == 0] if constraint == "equalized_odds" else [y >= 0]
    value = decided != y if constraint == "error_rate_parity" else decided
    return [np.ptp([value[e & (groups == k)].mean() for k in np.unique(groups)]) for e in events]


def costly(n_rows, seed, n_features):
    """Return rows of which equal rates of decisions cost much accuracy."""
    return fc.make_biased_classification(n_rows, n_features, gap=0.3, random_state=seed)


LINEAR, TREES = fc.FairLogisticClassifier, fc.FairBoostingClassifier
CASES = [(LINEAR, "equalized_odds", lambda n_rows, seed, few: drawn(n_rows, seed, 10 * few))]
CASES += [(LINEAR, "error_rate_parity", lambda *given: drawn(*given, 0.15, ["a", "b", "c"]))]
CASES += [(kind, "demographic_parity", costly) for kind in (LINEAR, TREES)]


@pytest.mark.parametrize(("kind", "constraint", "draw"), CASES)
def test_the_expected_gap_is_near_that_of_as_many_new_rows(kind, constraint, draw):
    figures = []
    for seed in range(6):
        both = draw(2000, seed, 4)
        (X, y, groups), new = ([part[half::2] for part in both] for half in range(2))
        clf = kind(constraint, 0.02, enforce="decision").fit(X, y, sensitive_features=groups)
        training, measured = (gaps(clf, *rows, constraint) for rows in ((X, y, groups), new))
        found = clf.decision_search_.expected_gaps
        assert [one.training for one in found] == pytest.approx(training, abs=1e-12)
        assert all(one.bound == pytest.approx(0.02) and "<" not in one.name for one in found)
        expected = [one.expected for one in found]
        figures += zip(training, expected, measured, strict=True)
    training, expected, measured = np.mean(figures, axis=0)
    assert 3.0 * training < measured and 0.7 * measured < expected < 1.4 * measured


AGAINST_ALL = fc.DemographicParity(against="overall")
DOORS = {
    "linear": fc.FairLogisticClassifier(enforce="decision"),
    "groups and all": fc.FairLogisticClassifier(AGAINST_ALL, enforce="decision"),
    "a group": fc.FairLogisticClassifier(fc.DemographicParity(against="small"), enforce="decision"),
    "precisions": fc.FairLogisticClassifier("predictive_parity", enforce="decision"),
    "ratio": fc.FairLogisticClassifier("disparate_impact", enforce="decision"),
    "trees": fc.FairBoostingClassifier(enforce="decision", n_estimators=5, n_jobs=1),
    "thresholds": fc.FairThresholds(LogisticRegression(), per_group=True, cv=2),
    "confidence": LINEAR(kappa=0.3, enforce="decision", confidence=0.5, random_state=0),
}


@pytest.mark.parametrize("clf", DOORS.values(), ids=DOORS)
def test_every_door_tells_the_gap_on_new_rows(clf):
    X, y, groups = drawn(600, 0, n_features=3, share=0.4)
    clf.fit(X, y, sensitive_features=groups)
    found = clf.decision_search_.expected_gaps
    assert max(one.training for one in found) == pytest.approx(clf.decision_gap_, abs=1e-9)
    assert all(one.expected > one.training - 1e-3 for one in found)
    shown = fc.fairness_report(clf, X, y, groups).model["value"]
    assert f"{found[0].expected:.4f} expected on new rows" in shown[f"gap: {found[0].name}"]


def test_rows_in_shards_have_the_same_figures(monkeypatch):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    import fairconstrained.dask as collections

    monkeypatch.setattr("fairconstrained.dask.estimators.MOST_COLLECTED", 0)
    (X, y, groups), weight = drawn(900, 0, 3), np.linspace(0.5, 2.0, 900)
    options = {"constraint": "equalized_odds", "kappa": 0.05, "enforce": "decision"}
    parts = [da.from_array(part, 400) for part in (X, y, weight, groups)]
    there = collections.FairLogisticClassifier(**options)
    there.fit(*parts[:3], sensitive_features=parts[3])
    here = fc.FairLogisticClassifier(**options).bind(X, y, weight, sensitive_features=groups)
    at = here.problem.at(there.to_local()._variables(here))
    found = there.decision_search_.expected_gaps
    for one, two in zip(found, expected_gaps(at), strict=True):
        assert one.name.replace("'", "") == two.name and one.expected > one.training
        assert (one.training, one.expected) == pytest.approx((two.training, two.expected), abs=1e-9)


def test_a_gap_of_more_than_twice_the_bound_warns_and_fits_on_in_folds():
    X, y, groups = drawn(400, 0)
    for bounded in ("balanced_rate", fc.EqualizedOdds(against="small")):
        clf = fc.FairLogisticClassifier(bounded, 0.02, enforce="decision")
        with pytest.warns(fc.GeneralizationWarning, match="more than twice its bound of 0.02"):
            clf.fit(X, y, sensitive_features=groups)
    assert max(one.expected for one in clf.decision_search_.expected_gaps) > 0.1 and clf.bound_met_
    alone = np.where(np.arange(400) < 9, np.arange(400).astype("U5"), groups)
    wide = fc.FairLogisticClassifier(kappa=1.0, enforce="decision")
    (one,) = wide.fit(X, y, sensitive_features=alone).decision_search_.expected_gaps
    assert 0.99 < one.expected <= 1.0 and "small" not in one.uncertain  # no rate is above 1
    right = fc.FairLogisticClassifier("predictive_parity", 0.5, enforce="decision")
    (one,) = right.fit(y[:, None], y, sensitive_features=groups).decision_search_.expected_gaps
    assert one.training == one.expected == 0.0  # the fit to half of the rows is right on the others
    with config_context(enable_metadata_routing=True), pytest.warns(fc.GeneralizationWarning):
        clf.set_fit_request(sensitive_features=True)
        scores = cross_val_score(clf, X, y, cv=3, params={"sensitive_features": groups})
    assert np.isfinite(scores).all()


SHIFT = 0.6  # of the third feature between the groups of `draw`


def draw(n, seed):
    """Return rows whose label depends on two features, of which the group moves a third."""
    random = np.random.default_rng(seed)
    groups, z = random.integers(0, 2, n), random.standard_normal((n, 3))
    z[:, 2] += SHIFT * groups
    y = z @ [1.0, 1.0, 1.0] + random.logistic(scale=0.5, size=n) > SHIFT / 2
    return z, y.astype(int), groups


def fitted(n=4000, seed=0, constraint="demographic_parity", **options):
    X, y, groups = draw(n, seed)
    kappa = {"kappa": 0.12} if isinstance(constraint, str) else {}
    options = {**kappa, "confidence": 0.9, "random_state": seed, **options}
    clf = fc.FairLogisticClassifier(constraint, enforce="decision", **options)
    return clf.fit(X, y, sensitive_features=groups)


def unfitted():
    """Return the features, signs and groups of 500 rows, and what a split is made of."""
    X, y, groups = draw(500, 0)
    signs = np.where(y == 1, 1.0, -1.0)
    data = TrainingData(X, signs, np.array([0, 1]), Groups.encode(groups), np.ones(500))
    return X, signs, groups, data


def test_a_share_of_every_cell_is_held_out():
    X, signs, groups, data = unfitted()
    kept, held = split(data, 0.25, 0)
    assert len(kept.y) + len(held.y) == 500
    assert_array_equal(held.X, X[held.positions])
    for group, label in product((0, 1), (-1, 1)):
        size = np.sum((groups == group) & (signs == label))
        mine = np.sum((held.groups.codes == group) & (held.y == label))
        assert mine == round(0.25 * size)


BY_CHANCE = [
    (fc.DemographicParity(0.1), False),
    (fc.DemographicParity(0.1, against="overall"), True),
    (constraints.ErrorRateParity(0.1), False),
]


@pytest.mark.parametrize(("constraint", "groups_by_chance"), BY_CHANCE)
def test_labels_and_groups_by_chance_where_all_rows_are_compared_with(constraint, groups_by_chance):
    X, _, groups, data = unfitted()
    sizes, positives = set(), set()
    for seed in range(5):
        kept, held = hold_out(data, 0.4, seed, [constraint])
        assert len(kept.y) + len(held.y) == 500
        assert_array_equal(held.X, X[held.positions])
        sizes.add(tuple(np.bincount(held.groups.codes)))
        positives.add(int(np.sum(held.y > 0)))
    assert len(positives) > 1 and (len(sizes) > 1) == groups_by_chance
    assert groups_by_chance or sizes == {tuple(np.round(0.4 * np.bincount(groups)))}


def test_held_out_rows_are_named_and_the_rest_is_what_is_measured():
    clf = fitted()
    X, y, groups = draw(4000, 0)
    rest = np.setdiff1d(np.arange(4000), clf.holdout_indices_)
    assert abs(len(rest) - 2000) <= 1 and clf.certificate_.n_held_out == 4000 - len(rest)
    decisions = clf.predict(X)
    parts = [(decisions[some], groups[some]) for some in (rest, clf.holdout_indices_)]
    gap, of_held = (np.ptp([decided[g == k].mean() for k in (0, 1)]) for decided, g in parts)
    assert clf.decision_gap_ == pytest.approx(gap)
    assert clf.decision_search_.accuracy == pytest.approx(clf.score(X[rest], y[rest]))
    assert of_held < clf.certificate_.bounds.max() + 0.12 <= 0.12


def test_too_few_held_out_rows():
    with pytest.warns(fc.ConstantDecisionWarning, match="150 rows held out.*about [0-9]+ in all"):
        clf = fitted(300)
    certificate = clf.certificate_
    assert certificate.certified and certificate.n_accepted == 0
    assert 60 <= certificate.smallest <= 75 and 1000 < certificate.rows_needed < 5000
    assert isinstance(certificate.rows_needed, int) and np.ptp(clf.predict(draw(1000, 5)[0])) == 0
    assert max(one.expected for one in clf.decision_search_.expected_gaps) < 1e-9
    with pytest.warns(fc.ConstantDecisionWarning, match="0.9: no model other .* more rows"):
        assert fitted(300, kappa=0.0).certificate_.rows_needed is None


def test_a_cell_without_rows_to_split():
    X, y, groups = draw(2000, 0)
    groups = np.where(np.arange(2000) == 7, "alone", groups.astype("U5"))
    clf = fc.FairLogisticClassifier(kappa=0.12, enforce="decision", confidence=0.9)
    with pytest.warns() as caught:
        clf.fit(X, y, sensitive_features=groups)
    assert any("are too few" in str(one.message) for one in caught)
    certificate = clf.certificate_
    assert certificate.smallest == 0 and clf.decision_search_.constant
    assert certificate.rows_needed is None and certificate.certified


@pytest.mark.parametrize("constraint", ["group_auc", constraints.MinorityRate()])
def test_constraints_that_cannot_be_tested(constraint):
    with pytest.raises(ValueError, match=r"rates of predictions .* is not one .*at None"):
        fitted(400, constraint=constraint)


ON_RATES = [
    fc.DemographicParity(0.15, against="overall"),
    fc.DisparateImpact(0.6),
    constraints.PredictiveParity(0.15),
    constraints.BoundedGroupLoss(0.25),
    constraints.IntersectionalLossParity(0.06),
    constraints.ROCParity(0.2, n_thresholds=30),
    constraints.PartialDemographicParity(0.5, n_ranks=4),
    constraints.WeakPartialDemographicParity(0.5),
    [fc.DemographicParity(0.2), constraints.ErrorRateParity(0.15)],
]


@pytest.mark.cases(1)
@pytest.mark.parametrize("constraint", ON_RATES, ids=lambda one: repr(one)[:32])
def test_every_constraint_is_certified_and_holds_in_the_population(constraint):
    clf = fitted(6000, constraint=constraint)
    certificate = clf.certificate_
    assert certificate.n_accepted >= 1 and certificate.certified
    assert not clf.decision_search_.constant
    assert len(certificate.bounds) == len(certificate.names) and certificate.bounds.max() <= 0
    X, y, groups = draw(100_000, 77)
    scores, labels = clf.decision_function(X), np.where(y == 1, 1.0, -1.0)
    for one in constraint if isinstance(constraint, list) else [constraint]:
        if getattr(one, "n_thresholds", None) is not None:
            one = constraints.ROCParity(one.kappa, thresholds=np.linspace(-4.0, 4.0, 50))
        term = one.bind(labels, groups, np.ones(len(y)))
        assert term.zero_one().value(scores).max() <= 0.01


def test_without_a_certificate_constant_predictions_may_violate():
    """Error rates of constant predictions differ between groups: the certificate says no."""
    X, y, groups = draw(300, 0)
    y = np.where(groups == 1, np.arange(300) % 10 == 0, np.arange(300) % 2).astype(int)
    options = {"enforce": "decision", "confidence": 0.99, "random_state": 0}
    clf = fc.FairLogisticClassifier("error_rate_parity", 0.02, **options)
    with pytest.warns(fc.ConstantDecisionWarning):
        clf.fit(X, y, sensitive_features=groups)
    assert not clf.certificate_.certified and np.all(np.isinf(clf.certificate_.bounds))


def few_drawn(n_rows, seed, share=0.03, shift=-1.0):
    """Return rows with a small group whose scores are lower, and features of few rows."""
    rng = np.random.default_rng(seed)
    small = rng.random(n_rows) < share
    u = rng.standard_normal(n_rows) + np.where(small, shift, 0.0)
    levels = rng.integers(0, 40, n_rows)
    X = np.column_stack([u, rng.standard_normal(n_rows) + small, *(levels == k for k in range(40))])
    y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(0.5 - 2.0 * u))).astype(int)
    return X, y, np.where(small, "small", "large")


def bound(X, y, groups):
    return fc.FairLogisticClassifier("equalized_odds", 0.02).bind(X, y, sensitive_features=groups)


def labels_of(fit):
    scores, _ = fit.unconstrained.on(fit.model)(fit.data, None)
    return SoftLabels(scores, fit.data.y, fit.data.groups.codes, fit.data.sample_weight)


def soft_rate(selected, chance, counted):
    """Return the rate of counted rows, and as 300 rows that of all rows by their chances."""
    share = counted.sum() / (counted.sum() + 300.0)
    soft = np.average(selected, weights=chance)
    return share * selected[counted].mean() + (1.0 - share) * soft


def test_a_soft_rate_is_the_expectation_over_labels():
    X, y, groups = few_drawn(3000, 0)
    fit = bound(X, y, groups)
    labels = labels_of(fit)
    (part,) = labels.constraints(fit.problem)
    scores, small = X[:, 0] - 0.3, groups == "small"
    p, selected = labels.probability, scores > 0
    rates = [soft_rate(selected, p * here, here & (y == 1)) for here in (small, ~small)]
    values = part.term.zero_one().value(scores)
    assert np.min(np.abs(values + 0.02 - (rates[0] - rates[1]))) < 1e-12


def test_ratios_are_those_of_the_soft_rates():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 3)), rng.choice(3, size=300, p=[0.45, 0.45, 0.1])
    y = X.sum(axis=1) + 0.8 * groups + rng.logistic(size=300) > 0.5
    constraint = fc.PredictiveEquality(ratio=0.8)
    fit = fc.FairLogisticClassifier(constraint).bind(X, y, sensitive_features=groups)
    labels = labels_of(fit)
    (part,) = labels.constraints(fit.problem)
    scores, members = fit.data.X[:, 0], [fit.data.groups.codes == k for k in range(3)]
    chance, negative = 1.0 - labels.probability, fit.data.y < 0
    rates = [soft_rate(scores > 0, chance * here, here & negative) for here in members]
    found = part.term.zero_one().gap(scores)
    assert_allclose(np.sort(found), np.sort([1.0 - a / b for a, b in permutations(rates, 2)]))
    assert_allclose(part.term.gap_bounds, 0.2)


def test_a_price_lowers_the_expected_violation(monkeypatch):
    found = dict.fromkeys((0.0, 5.0), 0.0)
    for seed in range(3):
        X, y, groups = few_drawn(3000, seed, share=0.015, shift=-0.7)
        fit = bound(X, y, groups)
        first = fit.solve()[0]
        for price in found:
            monkeypatch.setattr(candidates, "_PRICE", price)
            task = fit.decision_task(first)
            scores, _ = fit.model.forward(task.search().w)
            estimates = task.expected[0].term.zero_one().value(scores)
            found[price] += max(float(estimates.max()), 0.0)
    assert found[5.0] < found[0.0]
