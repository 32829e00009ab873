"""Cases of the fuzzer, and outcomes whose figures were changed."""

import copy
from dataclasses import replace

from benchmarks.fuzz.data import Chosen, DataSpec
from benchmarks.fuzz.fitting import Case

SPEC = DataSpec(seed=1, n_rows=120, n_features=3, signal=4.0, weights="uniform")


def case_of(estimator="FairLogisticClassifier", spec=SPEC, **settings):
    settings = {"constraint": "demographic_parity", "alpha": 1e-2, **settings}
    if estimator == "NeymanPearsonClassifier":
        del settings["constraint"]
    return Case(0, 0, Chosen(estimator, settings, spec))


def kinds(found):
    return {one.kind for one in found}


def tampered(outcome, **attributes):
    """Return the outcome of an estimator with other attributes; of `result_` where it has them."""
    estimator = copy.copy(outcome.estimator)
    own = {k: v for k, v in attributes.items() if hasattr(estimator.result_, k)}
    estimator.result_ = replace(estimator.result_, **own)
    for name in attributes.keys() - own.keys():
        setattr(estimator, name, attributes[name])
    return replace(outcome, estimator=estimator)
