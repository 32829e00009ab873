"""Arguments of the displays that are not valid: errors that name the argument."""

from __future__ import annotations

import re

import matplotlib
import numpy as np
import pytest

from fairconstrained import FairLogisticClassifier, make_biased_classification, plotting

matplotlib.use("Agg")

N = 60
X, Y, GROUPS = make_biased_classification(N, 3, gap=0.4, random_state=0)
MODEL = FairLogisticClassifier().fit(X, Y, sensitive_features=GROUPS)
NAN = float("nan")
TRACE = MODEL.result_.trace


def convergence(name, value):
    plotting.ConvergenceDisplay(**{"traces": {"a": TRACE}, name: value}).plot()


def results(name, value):
    plotting.ConvergenceDisplay.from_results(value)


def curve(name, value):
    plotting.FairnessPathDisplay(
        **{"gaps": [0.1, 0.05], "accuracies": [0.8, 0.7], name: value}
    ).plot()


def path(name, value):
    plotting.FairnessPathDisplay.from_path(value)


def fitted(kind):
    rows = {"X": X, "y": Y, "sensitive_features": GROUPS}
    return lambda name, value: kind.from_estimator(**{"estimator": MODEL, **rows, name: value})


RATES, METRICS = fitted(plotting.GroupRateDisplay), fitted(plotting.GroupMetricsDisplay)
DENSITIES = fitted(plotting.ScoreDensityDisplay)
TABLES = [
    (convergence, "traces", ["a", 3, {"a": 3}, [TRACE]]),
    (convergence, "x", ["time", 3, ["seconds"], None]),
    (convergence, "reference", ["a", NAN, [1.0], True, np.inf]),
    (convergence, "feasible", ["a", NAN, 0, -1.0, None, [1.0]]),
    (results, "results", ["a", None, 3, {"a": 3}, [1], TRACE]),
    (curve, "gaps", ["a", ["a", "b"], [NAN, NAN], [[0.1, 0.2]], [], [0.1]]),
    (curve, "accuracies", ["a", None, [[0.1, 0.2]], [NAN, 0.8], [0.1]]),
    (curve, "kappas", ["a", [NAN, 0.1], [0.1], [[0.1, 0.2]]]),
    (curve, "unconstrained", ["a", 3, [0.1], ("a", "b"), (NAN, 0.1)]),
    (curve, "points", ["a", 3, {"a": 3}, {"a": "xy"}, {"a": [1.0]}]),
    (curve, "noise", ["a", 3, [0.1], ["a", "b"], [[0.1, 0.2]]]),
    (curve, "chosen", ["a", 2, -1, 1.5, [1], True]),
    (path, "path", ["a", None, 3, MODEL]),
    (METRICS, "metrics", ["accuracy", None, 3, ["zz"], [3]]),
    (METRICS, "ax", ["a", 3]),
    (RATES, "ax", ["a", 3]),
    (RATES, "kappa", ["a", -1.0, NAN, [1.0], True, 1.5]),
    (RATES, "threshold", ["a", NAN, [1.0], True]),
    (RATES, "y", ["a", 3, Y + 5, np.full(N, NAN), [None] * N]),
    (RATES, "X", [X[:-1]]),
    (DENSITIES, "threshold", ["a", NAN, [1.0], True]),
    (DENSITIES, "ax", ["a", 3]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "name", "value"),
    [(call, name, value) for call, name, values in TABLES for value in values],
)
def test_the_error_names_the_argument(call, name, value):
    with pytest.raises((ValueError, TypeError)) as found:
        call(name, value)
    assert re.search(rf"\b{name}\b", str(found.value)), found.value
    assert len(str(found.value)) > 20
