"""Cases of the fuzzer, and outcomes whose figures were changed."""

import copy
from dataclasses import replace

from benchmarks.fuzz.data import DataSpec
from benchmarks.fuzz.fitting import Case

SPEC = DataSpec(seed=1, n_rows=120, n_features=3, signal=4.0, weights="uniform")


def case_of(estimator="FairLogisticClassifier", spec=SPEC, **settings):
    settings = {"constraint": "demographic_parity", "alpha": 1e-2, **settings}
    if estimator == "NeymanPearsonClassifier":
        del settings["constraint"]
    return Case(estimator, settings, spec)


def kinds(failures):
    return {failure.kind for failure in failures}


def tampered(outcome, **attributes):
    """Return the outcome of an estimator with other attributes; of `result_` where it has them."""
    estimator = copy.copy(outcome.estimator)
    of_result = {k: v for k, v in attributes.items() if hasattr(estimator.result_, k)}
    estimator.result_ = replace(estimator.result_, **of_result)
    for name in attributes.keys() - of_result.keys():
        setattr(estimator, name, attributes[name])
    return replace(outcome, estimator=estimator)
