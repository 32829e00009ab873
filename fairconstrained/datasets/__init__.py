"""Benchmark data sets of the fairness literature, and generated data with a known unfairness.

Every ``fetch_*`` function reads its files from the folder that the environment variable
``FAIRCONSTRAINED_DATA`` names and, where that is not set, asks OpenML. Both give the same table,
with its rows in the same order.
"""

from fairconstrained.datasets._fetch import (
    fetch_a9a,
    fetch_adult,
    fetch_bank,
    fetch_communities,
    fetch_compas,
    fetch_law_school,
)
from fairconstrained.datasets._synthetic import make_biased_classification

__all__ = [
    "fetch_a9a",
    "fetch_adult",
    "fetch_bank",
    "fetch_communities",
    "fetch_compas",
    "fetch_law_school",
    "make_biased_classification",
]
