"""Partial demographic parity (IDCA, section 7.1): accuracy against fairness in a range of ranks."""

from __future__ import annotations

from argparse import Namespace

from benchmarks.harness import rank_parity
from fairconstrained.constraints import PartialDemographicParity
from fairconstrained.metrics import partial_demographic_parity_difference

EXPERIMENT = rank_parity.Experiment(
    name="partial_parity",
    symbol="DP^I",
    notion=PartialDemographicParity,
    metric=partial_demographic_parity_difference,
    kappas={
        "a9a": (0.01, 0.05, 0.1, 0.2, 0.28),
        "bank": (0.01, 0.08, 0.22, 0.3),
        "law_school": (0.005, 0.08, 0.1, 0.15, 0.2),
    },
    further_kappas={
        "a9a": (0.0, 0.4, 0.6),
        "bank": (0.0, 0.5, 0.7),
        "law_school": (0.0, 0.4, 0.6, 0.8),
    },
    weight=2.0,
)
add_options = rank_parity.add_options


def run(options: Namespace) -> None:
    """Write partial_parity.md, partial_parity-fits.md, and figures."""
    rank_parity.run_experiment(EXPERIMENT, options)
