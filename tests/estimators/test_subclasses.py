"""Subclasses whose `__init__` names other parameters than the library's class."""

import numpy as np
import pytest
from _support.classifiers import small_estimators
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from fairconstrained import FairRanker, make_biased_classification, make_biased_ranking

X, Y, GROUPS = make_biased_classification(300, 3, gap=0.4, random_state=0)
DOCUMENTS, RELEVANT, QUERY, QUALITY = make_biased_ranking(30, 8, random_state=1)
ESTIMATORS = small_estimators()


def strict_kind(estimator):
    """Return a subclass of an estimator's class that has the one parameter `strict`."""
    options, kind = estimator.get_params(deep=False), type(estimator)

    class Policy(kind):
        def __init__(self, strict=True):
            own = {"kappa": 0.15 if strict else 0.3} if options.get("kappa") else {}
            super().__init__(**{**options, **own})
            self.strict = strict

    return Policy


def rows_for(estimator):
    """Return rows, labels and further arguments of `fit`."""
    if isinstance(estimator, FairRanker):
        return DOCUMENTS, RELEVANT, {"sensitive_features": QUALITY, "query": QUERY}
    if type(estimator).__name__ == "NeymanPearsonClassifier":
        return X, Y, {}
    return X, Y, {"sensitive_features": GROUPS}


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_subclass_is_fitted_cloned_and_searched(name):
    estimator = ESTIMATORS[name]()
    rows, labels, params = rows_for(estimator)
    subclass = clone(strict_kind(estimator)())
    fitted = subclass.fit(rows, labels, **params)
    plain = clone(estimator)
    plain.set_params(**({"kappa": 0.15} if plain.get_params().get("kappa") else {}))
    np.testing.assert_array_equal(
        fitted.predict(rows), plain.fit(rows, labels, **params).predict(rows)
    )
    assert fitted.get_params(deep=False) == {"strict": True}
    if not isinstance(estimator, FairRanker):
        search = GridSearchCV(subclass, {"strict": [True, False]}, cv=2, error_score="raise")
        assert set(search.fit(rows, labels, **params).best_params_) == {"strict"}


@pytest.mark.parametrize("name", ["FairLogisticClassifier", "FairHingeClassifier"])
def test_subclasses_of_the_estimators_on_dask(name):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    on_dask = pytest.importorskip("fairconstrained.dask", reason="dask is not installed")
    parts = [da.from_array(one, chunks=100) for one in (X, Y, GROUPS)]
    plain = getattr(on_dask, name)
    ours = clone(strict_kind(plain(kappa=0.1))()).fit(*parts[:2], sensitive_features=parts[2])
    other = plain(kappa=0.15).fit(*parts[:2], sensitive_features=parts[2])
    np.testing.assert_array_equal(
        ours.predict(parts[0]).compute(), other.predict(parts[0]).compute()
    )
    np.testing.assert_array_equal(ours.to_local().coef_, other.coef_)
    assert ours.get_params(deep=False) == {"strict": True}
    assert ours.to_local().get_params()["kappa"] == 0.15
