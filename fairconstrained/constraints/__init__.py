"""The named notions of fairness. Each builds one term from labels, groups and weights."""

from fairconstrained.constraints.base import Constraint
from fairconstrained.constraints.intersectional import IntersectionalLossParity
from fairconstrained.constraints.losses import BoundedGroupLoss
from fairconstrained.constraints.minority import MinorityRate
from fairconstrained.constraints.pairwise_parity import (
    GroupAUCParity,
    InterGroupAUCParity,
    IntraGroupAUCParity,
    PairwiseParity,
)
from fairconstrained.constraints.parity import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    PredictiveEquality,
    RateParity,
)
from fairconstrained.constraints.rank_parity import (
    PartialDemographicParity,
    WeakPartialDemographicParity,
)
from fairconstrained.constraints.rates import BalancedRate, DisparateImpact, ErrorRateParity
from fairconstrained.constraints.roc import ROCParity

__all__ = [
    "CONSTRAINTS",
    "BalancedRate",
    "BoundedGroupLoss",
    "Constraint",
    "DemographicParity",
    "DisparateImpact",
    "EqualOpportunity",
    "EqualizedOdds",
    "ErrorRateParity",
    "GroupAUCParity",
    "InterGroupAUCParity",
    "IntersectionalLossParity",
    "IntraGroupAUCParity",
    "MinorityRate",
    "PairwiseParity",
    "PartialDemographicParity",
    "PredictiveEquality",
    "ROCParity",
    "RateParity",
    "WeakPartialDemographicParity",
]

CONSTRAINTS = {
    "demographic_parity": DemographicParity,
    "equal_opportunity": EqualOpportunity,
    "predictive_equality": PredictiveEquality,
    "equalized_odds": EqualizedOdds,
    "error_rate_parity": ErrorRateParity,
    "disparate_impact": DisparateImpact,
    "balanced_rate": BalancedRate,
    "minority_rate": MinorityRate,
    "bounded_group_loss": BoundedGroupLoss,
    "intersectional_loss": IntersectionalLossParity,
    "group_auc": GroupAUCParity,
    "inter_group_auc": InterGroupAUCParity,
    "intra_group_auc": IntraGroupAUCParity,
    "roc_parity": ROCParity,
    "partial_dp": PartialDemographicParity,
    "weak_partial_dp": WeakPartialDemographicParity,
}
