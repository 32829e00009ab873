"""Weak partial demographic parity (IDCA, section 7.2): accuracy against fairness."""

from __future__ import annotations

from argparse import Namespace

from benchmarks.harness import rank_parity
from fairconstrained.constraints import WeakPartialDemographicParity
from fairconstrained.metrics import weak_partial_demographic_parity_difference

EXPERIMENT = rank_parity.Experiment(
    name="weak_partial_parity",
    symbol="WDP^I",
    notion=WeakPartialDemographicParity,
    metric=weak_partial_demographic_parity_difference,
    kappas={
        "a9a": (0.005, 0.03, 0.05, 0.1, 0.15),
        "bank": (0.01, 0.03, 0.05, 0.07, 0.1),
        "law_school": (0.005, 0.04, 0.06, 0.1, 0.15),
    },
    further_kappas={
        "a9a": (0.0, 0.3, 0.5),
        "bank": (0.0, 0.2, 0.4),
        "law_school": (0.0, 0.3, 0.45, 0.6),
    },
    weight=1.0,
)
add_options = rank_parity.add_options


def run(options: Namespace) -> None:
    """Write weak_partial_parity.md, weak_partial_parity-fits.md, and figures."""
    rank_parity.run_experiment(EXPERIMENT, options)
