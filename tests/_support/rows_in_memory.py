"""Classifiers of rows in memory that dask collections are compared with."""

from __future__ import annotations

from fairconstrained import FairLogisticClassifier


def in_memory_classifier(*args: object, **options: object) -> FairLogisticClassifier:
    """Return a classifier with the default solver of dask collections, which have no Hessians.

    With the same solver both have the same solution up to rounding errors.
    """
    return FairLogisticClassifier(*args, **{"solver": "exact-penalty", **options})
