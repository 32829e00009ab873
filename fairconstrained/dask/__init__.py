"""Linear classifiers under fairness constraints, trained on dask collections.

Import the estimators from here: ``from fairconstrained.dask import FairLogisticClassifier``. They
take dask arrays and dask dataframes, and run on the default :class:`distributed.Client`, on one
that was set as the attribute `client`, or else on the threads of this process. They need the extra
"dask" (``pip install "fairconstrained[dask]"``).

What belongs here: partitions of collections, workers, lazy predictions. What does not: sums over
the rows of one shard (:mod:`fairconstrained.shards`). The estimators are imported on first use:
workers import modules of this package without them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairconstrained.dask.estimators import FairHingeClassifier, FairLogisticClassifier

__all__ = ["FairHingeClassifier", "FairLogisticClassifier"]


def __getattr__(name: str) -> Any:
    """Return an estimator."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fairconstrained.dask import estimators

    return getattr(estimators, name)
