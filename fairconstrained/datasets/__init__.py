"""Benchmark data sets of the fairness literature, and synthetic data with a known gap.

The ``fetch_*`` functions read files from the folder in the environment variable
``FAIRCONSTRAINED_DATA``. If it is not set, they download the data from OpenML. Both sources give
the same table, with the rows in the same order. `fetch_mslr` reads a file that the user names.

Data for examples and benchmarks belong here; what users pass is checked in ``data``.
"""

from fairconstrained.datasets._fetch import (
    fetch_a9a,
    fetch_adult,
    fetch_bank,
    fetch_communities,
    fetch_compas,
    fetch_law_school,
)
from fairconstrained.datasets._generated import (
    fetch_mslr,
    make_biased_classification,
    make_biased_ranking,
)

__all__ = [
    "fetch_a9a",
    "fetch_adult",
    "fetch_bank",
    "fetch_communities",
    "fetch_compas",
    "fetch_law_school",
    "fetch_mslr",
    "make_biased_classification",
    "make_biased_ranking",
]
