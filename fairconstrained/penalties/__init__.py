"""Penalties: functions of the weights that are added to a composite function."""

from fairconstrained.penalties.base import L2, ConvexSum, Linear, Penalty, Sum, Zero
from fairconstrained.penalties.separable import L1, SCAD, InUnits, Leading, Proximity

__all__ = [
    "L1",
    "L2",
    "SCAD",
    "ConvexSum",
    "InUnits",
    "Leading",
    "Linear",
    "Penalty",
    "Proximity",
    "Sum",
    "Zero",
]
