"""Proved bounds on the objective of every model that meets the constraints.

What an optimality gap is and how a bound is found belongs here; what it says belongs to estimators.
"""

from fairconstrained.bounds.gap import NOT_ASKED_FOR, OptimalityGap, optimality_gap

__all__ = ["NOT_ASKED_FOR", "OptimalityGap", "optimality_gap"]
