"""Several sensitive attributes: crossed, or each on its own; and rows that constraints bring."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from _support.containers import DENSE
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import FairLogisticClassifier, make_biased_classification
from fairconstrained.constraints import (
    CLASSIFIER_CONSTRAINTS,
    DemographicParity,
    IntersectionalLossParity,
    MinorityRate,
)
from fairconstrained.data.groups import Groups, check_groups

# The helpers here set kappa for all constraints, also those with a tolerance of their own.
pytestmark = pytest.mark.filterwarnings("ignore:kappa=:fairconstrained.InputWarning")

NAMES = list("abcd")


X, Y, GROUPS = make_biased_classification(400, 4, gap=0.5, random_state=0)
noise = np.random.default_rng(0).normal(size=len(Y))
table = pd.DataFrame({"sex": np.array(["f", "m"])[GROUPS], "old": X[:, 0] + noise > 0.0})
DATA = X, Y, GROUPS = (X, Y, table)


def fitted(X, y, groups=None, sample_weight=None, **options):
    options = {"kappa": 0.02, **options}
    return FairLogisticClassifier(**options).fit(X, y, sample_weight, sensitive_features=groups)


class Only(DemographicParity):
    """Demographic parity of one attribute, whatever the groups are."""

    def __init__(self, column=0, kappa=None, *, surrogate=None, against="pairs", ratio=None):
        super().__init__(kappa, surrogate=surrogate, against=against, ratio=ratio)
        self.column = column

    def bind(self, y, groups, sample_weight):
        return super().bind(y, groups.columns[self.column], sample_weight)


class TestMarginal:
    def test_it_is_the_list_of_the_attributes_constraints(self):
        marginal = fitted(X, Y, GROUPS, combine="marginal")
        listed = fitted(X, Y, GROUPS, constraint=[Only(0), Only(1)])
        assert marginal.result_.converged
        assert_allclose(marginal.coef_, listed.coef_, atol=1e-10)
        assert_allclose(marginal.multipliers_, listed.multipliers_, atol=1e-8)
        assert np.count_nonzero(marginal.multipliers_ > 1e-3) == 2  # one of each attribute

    def test_every_attribute_is_fair_and_the_intersections_need_not_be(self):
        rates = fitted(X, Y, GROUPS, combine="marginal").predict_proba(X)[:, 1]
        for column in GROUPS:
            of_groups = pd.Series(rates).groupby(GROUPS[column].to_numpy()).mean()
            assert np.ptp(of_groups) == pytest.approx(0.02, abs=1e-3)
        of_cells = pd.Series(rates).groupby([GROUPS["sex"], GROUPS["old"]]).mean()
        assert np.ptp(of_cells) > 0.03

    def test_names_tell_attribute_and_value(self):
        classifier = fitted(X, Y, GROUPS, combine="marginal")
        assert classifier.groups_.tolist() == ["sex=f", "sex=m", "old=False", "old=True"]
        groups = Groups.encode(GROUPS, combine="marginal")
        names = [DemographicParity(0.1).bind(Y, one, np.ones(400)).names for one in groups.separate]
        assert names[0][0] == "rate(sex=f) - rate(sex=m) <= 0.1"
        assert names[1][0] == "rate(old=False) - rate(old=True) <= 0.1"

    def test_one_attribute_is_as_it_was(self):
        for groups in (GROUPS["sex"], GROUPS[["sex"]], GROUPS["sex"].tolist()):
            marginal = fitted(X, Y, groups, combine="marginal")
            assert marginal.groups_.tolist() == ["f", "m"]
            assert_array_equal(marginal.coef_, fitted(X, Y, groups).coef_)

    @pytest.mark.parametrize("name", sorted(set(CLASSIFIER_CONSTRAINTS) - {"bounded_group_loss"}))
    def test_every_constraint_takes_it(self, name):
        options = {"minority": "sex=f"} if name == "minority_rate" else {}
        constraint = CLASSIFIER_CONSTRAINTS[name](**options)
        classifier = fitted(X, Y, GROUPS, constraint=constraint, combine="marginal", kappa=0.2)
        assert classifier.violation_ <= 1e-4
        assert len(classifier.groups_) == 4

    def test_the_minority_is_a_group_of_one_attribute(self):
        rule = MinorityRate(0.48, minority="sex=f")
        marginal = fitted(X, Y, GROUPS, constraint=rule, combine="marginal")
        alone = fitted(X, Y, GROUPS["sex"], constraint=MinorityRate(0.48, minority="f"))
        assert_allclose(marginal.coef_, alone.coef_, atol=1e-10)
        listed = r"\['sex=f', 'sex=m', 'old=False', 'old=True'\]"
        with pytest.raises(ValueError, match=f"minority=None is not one of the groups {listed}"):
            fitted(X, Y, GROUPS, constraint=MinorityRate(0.4), combine="marginal")

    def test_intersectional_groups_overlap(self):
        constraint = IntersectionalLossParity(0.05, loss="logistic")
        classifier = fitted(X, Y, GROUPS, constraint=constraint, combine="marginal")
        names = [f"loss({name}) - loss(all) <= 0.05" for name in classifier.groups_]
        bound = constraint.bind(Y, Groups.encode(GROUPS, combine="marginal"), np.ones(400))
        assert list(bound.names) == names

    @pytest.mark.cases(4)
    @pytest.mark.parametrize(
        "constraint",
        [
            DemographicParity(0.05),
            MinorityRate(0.48, minority="old=True"),
            IntersectionalLossParity(0.05),
            IntersectionalLossParity(0.05, membership="columns"),
        ],
    )
    def test_a_missing_value_of_one_attribute_changes_no_other(self, constraint):
        X, y, table = DATA
        table = table.assign(sex=table["sex"] == "f").astype(object)
        part = table.assign(sex=np.where(np.arange(400) % 3 > 0, table["sex"], None))
        options = {"combine": "marginal", "groups_missing": "ignore_in_constraint"}
        clf, w = FairLogisticClassifier(constraint, **options), np.linspace(-1.0, 1.0, 5)
        found, expected = (
            clf.bind(X, y, None, groups).problem.at(w).constraints for groups in (part, table)
        )
        assert len(found) == len(expected)
        assert found[-1] == pytest.approx(expected[-1], abs=1e-12)  # of "old", which is complete
        if len(found) > 1:
            assert abs(found[0] - expected[0]) > 1e-4

    def test_bind_takes_one_grouping(self):
        groups = Groups.encode(GROUPS, combine="marginal")
        with pytest.raises(ValueError, match=r"2 attributes are on their own.*groups.separate"):
            DemographicParity().bind(Y, groups, np.ones(400))
        assert check_groups(groups, 400, combine="marginal") is groups


@pytest.fixture
def parts():
    """Return 250 training rows, 150 other rows, and the sex of these."""
    return X[:250], Y[:250], X[250:], GROUPS["sex"].to_numpy()[250:]


class TestReferenceRows:
    """The rows that `MinorityRate` is about are read as X is."""

    def share(self, classifier, X, members):
        """Return the minority's share of the positive decisions, by probabilities."""
        rates = classifier.predict_proba(X)[:, 1]
        return rates[members].sum() / rates.sum()

    def test_the_training_rows_are_the_default(self):
        sex = GROUPS["sex"]
        same = {"solver": "augmented-lagrangian"}  # there are no Hessians of two sets of rows
        default = fitted(X, Y, sex, constraint=MinorityRate(0.48, minority="f"), **same)
        rule = MinorityRate(0.48, minority="f", reference=X, reference_groups=sex)
        assert_allclose(default.coef_, fitted(X, Y, constraint=rule, **same).coef_, atol=1e-8)
        assert self.share(default, X, sex == "f") == pytest.approx(0.48, abs=1e-4)

    @pytest.mark.parametrize("make", [np.asarray, sp.csr_array, DENSE["pandas"], DENSE["polars"]])
    def test_other_rows_without_labels_and_training_rows_without_groups(self, parts, make):
        X, y, Z, sex = parts
        rule = MinorityRate(0.48, minority="f", reference=make(Z), reference_groups=sex)
        classifier = fitted(make(X), y, constraint=rule)
        assert classifier.result_.converged
        assert self.share(classifier, make(Z), sex == "f") == pytest.approx(0.48, abs=1e-4)
        free = fitted(make(X), y, constraint=None)
        assert self.share(free, make(Z), sex == "f") < 0.45

    def test_a_mask(self, parts):
        X, y, Z, sex = parts
        named = MinorityRate(0.48, minority="f", reference=Z, reference_groups=sex)
        masked = MinorityRate(0.48, minority=True, reference=Z, reference_groups=sex == "f")
        expected = fitted(X, y, constraint=named).coef_
        assert_allclose(fitted(X, y, constraint=masked).coef_, expected, atol=1e-10)

    @pytest.mark.parametrize("group_interactions", [False, True])
    def test_sensitive_columns_of_the_reference_rows(self, parts, group_interactions):
        X, y, Z, sex = parts
        frame = pd.DataFrame(X, columns=NAMES).assign(sex=DATA[2]["sex"][:250])
        other = pd.DataFrame(Z, columns=NAMES).assign(sex=sex)
        options = {"sensitive_columns": ["sex"], "group_interactions": group_interactions}
        inside = MinorityRate(0.48, minority="f", reference=other)
        clf = fitted(frame, y, constraint=inside, **options)
        assert self.share(clf, other, sex == "f") == pytest.approx(0.48, abs=1e-4)
        if group_interactions:
            assert clf.coef_.shape == (2, 5)
            return
        rule = MinorityRate(0.48, minority="f", reference=Z, reference_groups=sex)
        assert_allclose(clf.coef_[0, :4], fitted(X, y, constraint=rule).coef_[0], atol=1e-10)

    @pytest.mark.cases(6)
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (
                lambda Z, sex: {"reference": Z[:, :3], "reference_groups": sex},
                r"^reference: X has 3 features.*4",
            ),
            (
                lambda Z, sex: {"reference": Z, "reference_groups": sex[1:]},
                "reference_groups has 149 rows, reference has 150",
            ),
            (
                lambda Z, sex: {"reference": Z},
                r"no groups: pass reference_groups.*sensitive_columns",
            ),
            (
                lambda Z, sex: {"reference_groups": sex},
                "reference_groups are given without reference",
            ),
            (lambda Z, sex: {}, "needs groups"),
            (
                lambda Z, sex: {
                    "reference": Z,
                    "reference_groups": np.where(sex == "f", None, sex),
                },
                "reference_groups has missing values",
            ),
        ],
    )
    def test_rows_and_groups_that_do_not_fit(self, parts, make, message):
        X, y, Z, sex = parts
        given = make(Z, sex)
        groups = y if given.keys() == {"reference_groups"} else None
        with pytest.raises(ValueError, match=message):
            fitted(X, y, groups, constraint=MinorityRate(**given))
