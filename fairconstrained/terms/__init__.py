"""Terms: functions of the scores in two steps, statistics and a small function of them.

Statistics add up over rows; only they read the scores. What a term means as a notion of fairness
belongs in ``constraints``.
"""

from fairconstrained.terms.base import SumTerm, Term
from fairconstrained.terms.cell_means import CellMeans

__all__ = ["CellMeans", "SumTerm", "Term"]
