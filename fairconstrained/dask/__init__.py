"""Linear classifiers under fairness constraints, trained on dask collections.

Import the estimators from here: ``from fairconstrained.dask import FairLogisticClassifier``. They
take dask arrays and dask dataframes, and run on the default :class:`distributed.Client`, on one
that was set as the attribute `client`, or else on the threads of this process. They need the extra
"dask" (``pip install "fairconstrained[dask]"``).

What belongs here: partitions of collections, workers, lazy predictions. What does not: sums over
the rows of one shard (:mod:`fairconstrained.shards`).
"""

from fairconstrained.dask.estimators import FairHingeClassifier, FairLogisticClassifier

__all__ = ["FairHingeClassifier", "FairLogisticClassifier"]
