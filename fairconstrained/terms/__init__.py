"""Terms: functions of the scores in two steps, statistics and a head that combines them.

Only the statistics read the scores of rows. What a term means as a notion of fairness belongs in
``constraints``.
"""

from fairconstrained.terms.base import Term
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.head import AffineHead, FunctionAverages, Majorant

__all__ = ["AffineHead", "CellMeans", "FunctionAverages", "Majorant", "Term"]
