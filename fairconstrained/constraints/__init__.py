"""The named notions of fairness. Each builds one term from labels, groups and weights."""

from fairconstrained.constraints.base import Constraint
from fairconstrained.constraints.parity import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    PredictiveEquality,
    RateParity,
)

__all__ = [
    "CONSTRAINTS",
    "Constraint",
    "DemographicParity",
    "EqualOpportunity",
    "EqualizedOdds",
    "PredictiveEquality",
    "RateParity",
]

CONSTRAINTS = {
    "demographic_parity": DemographicParity,
    "equal_opportunity": EqualOpportunity,
    "predictive_equality": PredictiveEquality,
    "equalized_odds": EqualizedOdds,
}
