"""Simple closed convex sets W on which the weights may lie, with exact projections.

What belongs here: sets and their products. A set says how it looks in other units of the variables
(`Domain.stretched`). Which units a fit uses is decided where its model is made.
"""

from fairconstrained.domains.balls import Ellipsoid, L1Ball, L2Ball, WeightedL1Ball
from fairconstrained.domains.base import Domain, Enlarged, WholeSpace
from fairconstrained.domains.boxes import Box, Intervals
from fairconstrained.domains.products import Blocks, Leading

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
