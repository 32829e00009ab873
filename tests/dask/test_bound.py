"""Whether a bound is met is said by fits to dask collections as by those in memory."""

import warnings

import numpy as np
import pytest

import fairconstrained
from fairconstrained import make_biased_classification
from fairconstrained.constraints import BoundedGroupLoss

da = pytest.importorskip("dask.array", reason="dask is not installed")
on_dask = pytest.importorskip("fairconstrained.dask", reason="dask is not installed")

X, Y, GROUPS = make_biased_classification(900, 4, gap=0.4, random_state=0)
OPTIONS = {
    "scores": {"kappa": 0.05},
    "decisions": {"kappa": 0.05, "enforce": "decision"},
    "population": {"kappa": 0.3, "enforce": "decision", "confidence": 0.8, "random_state": 0},
    "no constraint": {"constraint": None},
    "scores, impossible": {"constraint": BoundedGroupLoss(0.01)},
    "decisions, impossible": {"constraint": BoundedGroupLoss(0.01), "enforce": "decision"},
}


def fitted(kind, options, *rows, groups):
    with warnings.catch_warnings():  # bounds that cannot be met
        warnings.simplefilter("ignore")
        return kind(**options).fit(*rows, sensitive_features=groups)


@pytest.mark.cases(1)
@pytest.mark.parametrize("case", OPTIONS)
@pytest.mark.parametrize("name", ["FairLogisticClassifier", "FairHingeClassifier"])
def test_the_bound_that_was_asked_for(name, case):
    rows = [da.from_array(one, chunks=200) for one in (X, Y, GROUPS)]
    there = fitted(getattr(on_dask, name), OPTIONS[case], *rows[:2], groups=rows[2])
    here = fitted(getattr(fairconstrained, name), OPTIONS[case], X, Y, groups=GROUPS)
    expected = None if case == "no constraint" else "impossible" not in case
    assert there.bound_met_ is expected and here.bound_met_ is expected
    told = {True: "bound met", False: "bound not met", None: there.result_.status.value}[expected]
    assert str(there.result_).startswith(told)
    if case == "population":
        assert there.bound_met_ is there.certificate_.certified
        return
    by = there.violation_ if there.decision_search_ is None else there.decision_search_.violation
    assert there.bound_violation_ == by
    assert there.bound_violation_ == pytest.approx(here.bound_violation_, abs=1e-4)
    assert there.to_local().bound_met_ is expected
    if case == "decisions":
        decided = there.to_local().predict(X)
        rates = [np.mean(decided[k == GROUPS]) for k in (0, 1)]
        assert abs(rates[0] - rates[1]) <= 0.05
