"""What X, the groups and sensitive_columns may be held in: the same model comes out."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fairconstrained import FairLogisticClassifier, make_biased_classification

NAMES = ["a", "b", "c", "d", "e"]


@pytest.fixture(scope="module")
def data():
    X, y, groups = make_biased_classification(300, 5, gap=0.4, random_state=0)
    X[np.random.default_rng(0).random(X.shape) < 0.3] = 0.0  # something for sparse formats
    return X, y, groups


def fitted(X, y, groups=None, sample_weight=None, **options):
    classifier = FairLogisticClassifier(**{"kappa": 0.02, **options})
    return classifier.fit(X, y, sample_weight, sensitive_features=groups)


def assert_same(one, other, atol=1e-10):
    assert_allclose(one.coef_, other.coef_, rtol=0, atol=atol)
    assert_allclose(one.intercept_, other.intercept_, rtol=0, atol=atol)
    assert_allclose(one.multipliers_.sum(), other.multipliers_.sum(), rtol=0, atol=10 * atol)


FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "list": lambda X: X.tolist(),
    "object": lambda X: X.astype(object),
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}
SPARSE = {
    f"{form} {kind.__name__}": lambda X, form=form, kind=kind: kind(X).asformat(form)
    for form, kind in [
        *((form, sp.csr_array) for form in ("csr", "csc", "coo", "lil", "dok", "bsr")),
        *((form, sp.csr_matrix) for form in ("csr", "csc")),
    ]
}


class TestContainersOfX:
    @pytest.mark.parametrize("name", FRAMES)
    def test_dense(self, data, name):
        X, y, groups = data
        reference, other = fitted(X, y, groups), fitted(FRAMES[name](X), y, groups)
        assert_same(other, reference)
        assert_allclose(other.predict_proba(FRAMES[name](X)), reference.predict_proba(X))

    @pytest.mark.parametrize("name", SPARSE)
    def test_sparse(self, data, name):
        X, y, groups = data
        reference, other = fitted(X, y, groups), fitted(SPARSE[name](X), y, groups)
        assert_same(other, reference, atol=1e-7)  # sums in another order
        assert_array_equal(other.predict(SPARSE[name](X)), reference.predict(X))

    @pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
    def test_float32(self, data, container):
        X, y, groups = data
        single = container(X.astype(np.float32))
        reference, other = fitted(X, y, groups), fitted(single, y, groups)
        assert other.result_.converged and other.coef_.dtype == np.float64
        assert_same(other, reference, atol=1e-3)
        assert_allclose(other.predict_proba(single), reference.predict_proba(X), atol=1e-3)

    def test_columns_keep_their_names(self, data):
        X, y, groups = data
        table = FRAMES["pandas"](X)
        classifier = fitted(table, y, groups)
        assert_array_equal(classifier.feature_names_in_, NAMES)
        with pytest.raises(ValueError, match="feature names"):
            classifier.predict(table[NAMES[::-1]])
        with pytest.raises(ValueError, match="4 features"):
            fitted(X, y, groups).predict(X[:, :4])

    @pytest.mark.parametrize("container", [np.array, sp.csr_array, FRAMES["pandas"]])
    def test_arguments_of_the_user_are_not_changed(self, data, container):
        X, y, groups = data
        mine = [container(X), y.copy(), groups.copy(), np.where(y > 0, 0.0, 2.0) + (groups > 0)]
        before = [thing.copy() for thing in mine]
        fitted(*mine).predict(mine[0])
        dense = [thing.toarray() if sp.issparse(thing) else thing for thing in mine]
        for thing, same in zip(dense, before, strict=True):
            assert_array_equal(thing, same.toarray() if sp.issparse(same) else same)


class TestGroups:
    @pytest.mark.parametrize("form", ["array", "pandas", "polars", "list"])
    def test_several_columns_are_their_intersection(self, data, form):
        X, y, groups = data
        age = np.where(np.arange(300) % 2, "young", "old")
        sex = np.where(groups > 0, "m", "f")
        table = pd.DataFrame({"sex": sex, "age": age})
        forms = {
            "array": table.to_numpy(dtype=object),
            "pandas": table,
            "polars": pl.DataFrame({"sex": sex, "age": age}),
            "list": table.to_numpy().tolist(),
        }
        joined = fitted(X, y, [f"{s} {a}" for s, a in zip(sex, age, strict=True)])
        several = fitted(X, y, forms[form])
        assert_same(several, joined)
        found = [("f", "old"), ("f", "young"), ("m", "old"), ("m", "young")]
        assert several.groups_.tolist() == found

    def test_neither_the_names_of_groups_nor_their_order_matter(self):
        X, y, groups = make_biased_classification(
            300, 5, n_groups=4, gap=0.5, class_sep=4.0, random_state=1
        )
        reference = fitted(X, y, groups)
        for names in (["d", "c", "b", "a"], ["b", "d", "a", "c"]):
            other = fitted(X, y, np.array(names)[groups])
            assert_same(other, reference, atol=1e-7)
            assert other.decision_gap_ == pytest.approx(reference.decision_gap_, abs=1e-12)

    @pytest.mark.parametrize(
        "names", [["no", "yes"], [False, True], [-1, 1], [0.0, 7.0], np.array(["-", "x"], object)]
    )
    def test_names_of_classes(self, data, names):
        X, y, groups = data
        renamed = fitted(X, np.array(names)[y], groups)
        assert_same(renamed, fitted(X, y, groups), atol=0)
        assert_array_equal(renamed.classes_, names)
        assert set(renamed.predict(X).tolist()) == set(np.array(names).tolist())

    def test_the_order_of_the_classes(self, data):
        X, y, groups = data
        one, other = (fitted(X, label, groups, tol=1e-7) for label in (y, 1 - y))
        assert_allclose(other.coef_, -one.coef_, atol=1e-4)
        assert_array_equal(other.predict(X), 1 - one.predict(X))

    def test_the_order_of_rows(self, data):
        X, y, groups = data
        order = np.random.default_rng(0).permutation(300)
        assert_same(fitted(X[order], y[order], groups[order]), fitted(X, y, groups), atol=1e-7)


@pytest.fixture(scope="module")
def table(data):
    X, y, groups = data
    frame = pd.DataFrame(X, columns=NAMES)
    frame.insert(2, "sex", groups)
    return frame, y, groups


WAYS = {
    "name": "sex",
    "names": ["sex"],
    "tuple": ("sex",),
    "index": pd.Index(["sex"]),
    "position": 2,
    "positions": [2],
    "negative": [-4],
    "numpy": np.array([2]),
}


class TestSensitiveColumns:
    @pytest.mark.parametrize("way", WAYS)
    def test_equivalent_arguments(self, data, table, way):
        frame, y, groups = table
        reference = fitted(data[0], y, groups)
        classifier = fitted(frame, y, sensitive_columns=WAYS[way])
        assert_same(classifier, _with_a_zero(reference))
        assert_array_equal(classifier.groups_, [0, 1])
        assert classifier.n_features_in_ == 6 and classifier.feature_scale_[2] == 1.0

    @pytest.mark.parametrize("container", [*FRAMES, *SPARSE])
    def test_positions_in_any_container(self, table, container):
        frame, y, _ = table
        reference = fitted(frame.to_numpy(), y, sensitive_columns=[2])
        names = [*NAMES[:2], "sex", *NAMES[2:]]
        containers = FRAMES | SPARSE
        containers["pandas"] = lambda X: pd.DataFrame(X, columns=names)
        containers["polars"] = lambda X: pl.DataFrame(X, schema=names)
        X = containers[container](frame.to_numpy())
        other = fitted(X, y, sensitive_columns=[-4])
        assert_same(other, reference, atol=1e-7)
        assert_array_equal(other.predict(X), reference.predict(frame.to_numpy()))

    def test_the_sensitive_column_does_not_decide(self, table):
        frame, y, _ = table
        classifier = fitted(frame, y, sensitive_columns=["sex"])
        assert classifier.coef_[0, 2] == 0.0 and np.all(np.delete(classifier.coef_[0], 2))
        exchanged = frame.assign(sex=1 - frame["sex"])
        same = classifier.predict_proba(exchanged), classifier.predict_proba(frame)
        assert_allclose(*same, rtol=1e-14)  # the order of a sum depends on how memory is aligned

    def test_use_sensitive(self, data, table):
        frame, y, groups = table
        uses = fitted(frame, y, sensitive_columns=["sex"], use_sensitive=True)
        assert_same(uses, fitted(frame.to_numpy(), y, groups))
        assert uses.coef_[0, 2] != 0.0

    @pytest.mark.parametrize("library", ["pandas", "polars", "object"])
    def test_columns_of_strings(self, table, library):
        frame, y, groups = table
        frame = frame.assign(sex=np.where(groups > 0, "m", "f"))
        X = {"pandas": frame, "polars": pl.from_dict(frame.to_dict("list"))}.get(library)
        X = frame.to_numpy(dtype=object) if X is None else X
        classifier = fitted(X, y, sensitive_columns=[2])
        assert_array_equal(classifier.groups_, ["f", "m"])
        numbers = fitted(table[0], y, sensitive_columns=["sex"])
        assert_array_equal(classifier.predict(X), numbers.predict(table[0]))
        with pytest.raises(ValueError, match="convert"):
            fitted(X, y, sensitive_columns=[2], use_sensitive=True)

    def test_predict_needs_no_valid_groups(self, table):
        frame, y, _ = table
        classifier = fitted(frame, y, sensitive_columns=["sex"])
        unknown = frame.assign(sex=None)
        assert_array_equal(classifier.predict(unknown), classifier.predict(frame))

    @pytest.mark.parametrize("container", [*FRAMES, *SPARSE])
    def test_callable(self, data, container):
        X, y, _ = data
        made = (FRAMES | SPARSE)[container](X)

        def positive(rows):
            if hasattr(rows, "columns"):
                return rows["a"] > 0.5
            assert rows.ndim == 2  # lists come as arrays, sparse formats as CSR
            return rows[:, [0]] > 0.5

        classifier = fitted(made, y, sensitive_columns=positive)
        assert_same(classifier, fitted(X, y, X[:, 0] > 0.5), atol=1e-7)
        assert np.all(classifier.coef_) and classifier.groups_.tolist() == [False, True]

    def test_a_callable_on_a_mixed_frame_may_return_a_frame(self, table):
        frame, y, groups = table
        several = fitted(frame, y, sensitive_columns=lambda X: X[["sex"]])
        assert_same(several, fitted(frame, y, groups))

    def test_no_constraint_leaves_the_columns_out_as_well(self, data, table):
        frame, y, _ = table
        classifier = fitted(frame, y, constraint=None, sensitive_columns=["sex"])
        assert_same(classifier, _with_a_zero(fitted(data[0], y, constraint=None)))


def _with_a_zero(classifier):
    classifier.coef_ = np.insert(classifier.coef_, 2, 0.0, axis=1)
    return classifier
