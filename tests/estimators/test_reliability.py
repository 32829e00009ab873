"""The default solver ends converged without tuning, and units of the features do not matter."""

import numpy as np
import pandas as pd
import pytest

import fairconstrained as fc
from fairconstrained.datasets import fetch_adult, fetch_bank, fetch_compas, fetch_law_school
from fairconstrained.domains import Box, L1Ball, L2Ball

NOTIONS = ["demographic_parity", "equalized_odds"]
pytestmark = pytest.mark.parametrize("constraint", NOTIONS)


def biased(seed=0, n_samples=1000, n_features=10, **options):
    options = {"gap": 0.4, **options}
    return fc.make_biased_classification(n_samples, n_features, random_state=seed, **options)


def reliable(X, y, groups, **options):
    """Fit with the default solver; a warning that it did not converge would be an error."""
    classifier = fc.FairLogisticClassifier(**options).fit(X, y, sensitive_features=groups)
    assert classifier.result_.converged, classifier.result_.message
    assert classifier.violation_ <= 1e-4 and classifier.kkt_residual_ <= 1e-4
    assert np.all(np.isfinite(classifier.coef_)) and np.isfinite(classifier.objective_)
    return classifier


def one_hot(seed=0):
    """Four columns of eight levels; the first is skewed towards one of the groups."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 2, 1000)
    levels = rng.integers(0, 8, (1000, 4))
    levels[:, 0] = np.clip(levels[:, 0] + 2 * groups, 0, 7)
    y = (levels.sum(axis=1) + rng.normal(0, 4, 1000) > 15).astype(int)
    return np.concatenate([np.eye(8)[column] for column in levels.T], axis=1), y, groups


def rare(seed=0):
    """Two positive labels in a hundred, five of them in the first group."""
    X, _, groups = biased(seed)
    score = X[:, :5].sum(axis=1) + np.random.default_rng(seed).normal(size=1000)
    y = np.zeros(1000, dtype=int)
    for group, positives in ((0, 5), (1, 15)):
        score_inside = np.where(groups == group, score, -np.inf)
        y[np.argsort(score_inside)[-positives:]] = 1
    return X, y, groups


def difficult(name, seed=0):
    """Return rows of one of the kinds on which solvers of textbooks fail."""
    if name in ("one_hot", "rare"):
        return {"one_hot": one_hot, "rare": rare}[name](seed)
    X, y, groups = biased(seed, **({"n_samples": 60, "n_features": 200} if name == "wide" else {}))
    ones = np.ones(len(y))
    if name == "separable":
        y = (X @ np.arange(1, 11) > 0).astype(int)
    elif name == "tiny_cells":  # of three rows and of two, with a row per label at the least
        groups[:3], groups[3:5], y[:5] = 2, 3, [0, 1, 1, 0, 1]
    elif name == "duplicates":
        X = np.column_stack([X, X, 1e3 * X[:, 0], X[:, 1] + X[:, 2]])
    elif name == "constants":
        X = np.column_stack([X, ones, 0 * ones, 1e6 * ones])
    elif name == "heavy_tails":
        X = np.column_stack([np.exp(2 * X), X**3])
    elif name == "group_among_the_features":  # it is nearly the label
        flipped = np.random.default_rng(seed).random(1000) < 0.05
        X, y = np.column_stack([X, groups]), np.where(flipped, 1 - groups, groups)
    return X, y, groups


DATA = ["one_hot", "separable", "wide", "rare", "tiny_cells", "duplicates", "constants"]
DATA += ["heavy_tails", "group_among_the_features"]


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("seed", range(2))
def test_the_default_solver_on_difficult_data(constraint, name, seed):
    reliable(*difficult(name, seed), constraint=constraint)


@pytest.mark.parametrize("n_samples", [500, 70_000])  # 70,000 are read block by block
def test_numbers_of_accounts(constraint, n_samples):
    X, y, groups = biased(n_samples=n_samples)
    far = reliable(X + 1e8, y, groups, constraint=constraint)
    near = reliable(X, y, groups, constraint=constraint)
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-6)


@pytest.mark.parametrize("kappa", [0.0, 0.01, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("name", ["plain", "one_hot", "wide", "tiny_cells"])
def test_any_kappa(constraint, name, kappa):
    classifier = reliable(*difficult(name), constraint=constraint, kappa=kappa)
    assert kappa < 1.0 or not np.any(classifier.multipliers_)


@pytest.mark.parametrize("kappa", [0.0, 0.02])
@pytest.mark.parametrize("n_groups", [2, 3, 5, 10, 20])
def test_many_groups(constraint, n_groups, kappa):
    data = biased(n_samples=1500, n_groups=n_groups, gap=0.6)
    classifier = reliable(*data, constraint=constraint, kappa=kappa)
    assert len(classifier.groups_) == n_groups
    assert np.any(classifier.multipliers_ > 0.0)


def test_several_constraints(constraint):
    both = [constraint, fc.DemographicParity(0.02), fc.EqualizedOdds(0.05)]
    reliable(*biased(), constraint=both)
    mixed = [constraint, fc.EqualOpportunity(0.0), fc.PredictiveEquality(0.1, against="overall")]
    reliable(*biased(1, n_groups=4), constraint=mixed)


def inside(domain, coef):
    slack = 1e-9
    if isinstance(domain, Box):
        return domain.lower - slack <= coef.min() and coef.max() <= domain.upper + slack
    norm = np.linalg.norm(coef, 1 if isinstance(domain, L1Ball) else 2)
    return norm <= domain.radius * (1 + slack)


BINDING = [L1Ball(0.5), L2Ball(0.2), Box(-0.1, 0.1), Box(0.0, 1.0), Box(-np.inf, 0.1)]
DOMAINS = [*BINDING, L1Ball(20.0), L2Ball(5.0)]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("units", [1.0, [1.0] * 8 + [10.0, 0.1]], ids=["plain", "units"])
def test_coefficients_are_in_the_domain(constraint, domain, units):
    X, y, groups = biased()
    options = {"constraint": constraint, "kappa": 0.2}
    classifier = reliable(X * units, y, groups, domain=domain, **options)
    free = reliable(X * units, y, groups, **options)
    assert inside(domain, classifier.coef_[0])
    assert inside(domain, free.coef_[0]) == (domain not in BINDING)


def one_hot_frame(bunch, rows):
    """Return numbers and dummies, unscaled, of the first rows, labels and the first attribute."""
    data = bunch.data.iloc[:rows]
    groups = pd.DataFrame(bunch.sensitive_features).iloc[:rows, 0]
    X = pd.get_dummies(data.dropna(axis="columns"), dtype=float)
    return X, bunch.target.iloc[:rows], groups.astype(str)


@pytest.mark.parametrize("kappa", [pytest.param(0.0, marks=pytest.mark.slow), 0.05])
@pytest.mark.parametrize("fetch", [fetch_adult, fetch_bank, fetch_compas, fetch_law_school])
def test_real_data_as_it_comes(constraint, fetch, kappa, data_folder):
    X, y, groups = one_hot_frame(fetch(), rows=5000)
    classifier = reliable(X, y, groups, constraint=constraint, kappa=kappa)
    free = fc.FairLogisticClassifier(None).fit(X, y)
    assert free.score(X, y) - 0.1 < classifier.score(X, y)
