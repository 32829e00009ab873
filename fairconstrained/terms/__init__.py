"""Terms: functions of the scores in two steps, statistics and a head that combines them.

Only the statistics read the scores of rows. What a term means as a notion of fairness belongs in
``constraints``.
"""

from fairconstrained.terms.affine import AffineHead, AffineTerm, FunctionAverages
from fairconstrained.terms.base import (
    Batchable,
    Blockwise,
    Shardable,
    Shiftable,
    Smoothable,
    Term,
)
from fairconstrained.terms.cell_means import CellMeans
from fairconstrained.terms.convex_parts import DifferenceOfConvex, SumTerm

__all__ = [
    "AffineHead",
    "AffineTerm",
    "Batchable",
    "Blockwise",
    "CellMeans",
    "DifferenceOfConvex",
    "FunctionAverages",
    "Shardable",
    "Shiftable",
    "Smoothable",
    "SumTerm",
    "Term",
]
