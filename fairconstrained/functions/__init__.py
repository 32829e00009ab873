"""Scalar functions: surrogates of the indicator, losses of the margin, and what they are made of.

A function of one number belongs here; what is averaged over rows belongs in ``terms``.
"""

from fairconstrained.functions.losses import (
    LOSSES,
    Hinge,
    Logistic,
    Loss,
    Quadratic,
    SquaredHinge,
    TruncatedLogistic,
)
from fairconstrained.functions.surrogates import SURROGATES, Ramp, ShiftedSquare, Sigmoid, Surrogate

__all__ = [
    "LOSSES",
    "SURROGATES",
    "Hinge",
    "Logistic",
    "Loss",
    "Quadratic",
    "Ramp",
    "ShiftedSquare",
    "Sigmoid",
    "SquaredHinge",
    "Surrogate",
    "TruncatedLogistic",
]
