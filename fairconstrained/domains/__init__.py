"""Simple closed convex sets W on which the weights may lie, with exact projections.

A set, and how it looks in other units of the variables (`Domain.stretched`), belong here. Which
units a fit uses is decided where its model is made, in ``estimators``.
"""

from fairconstrained.domains.base import Blocks, Domain, Enlarged, Leading, WholeSpace
from fairconstrained.domains.sets import Box, Ellipsoid, Intervals, L1Ball, L2Ball, WeightedL1Ball

__all__ = [
    "Blocks",
    "Box",
    "Domain",
    "Ellipsoid",
    "Enlarged",
    "Intervals",
    "L1Ball",
    "L2Ball",
    "Leading",
    "WeightedL1Ball",
    "WholeSpace",
]
