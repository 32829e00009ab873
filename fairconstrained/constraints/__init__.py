"""The named notions of fairness. Each builds one term from labels, groups and weights.

What a notion asks, its measure on decisions and its claims belong here; sums over rows belong in
``terms``, and how a bound is reached in ``solvers`` and ``decisions``.
"""

from collections.abc import Sequence

from fairconstrained.constraints.base import Constraint
from fairconstrained.constraints.losses import BoundedGroupLoss, IntersectionalLossParity
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
    PredictiveParity,
    RateParity,
)
from fairconstrained.constraints.query_parity import QueryParity
from fairconstrained.constraints.rank_parity import (
    PartialDemographicParity,
    WeakPartialDemographicParity,
)
from fairconstrained.constraints.rates import (
    BalancedRate,
    CalibrationParity,
    DisparateImpact,
    ErrorRateParity,
    ROCParity,
)
from fairconstrained.constraints.shares import Churn, Coverage, MinorityRate
from fairconstrained.utils.arguments import resolve

__all__ = [
    "CLASSIFIER_CONSTRAINTS",
    "CONSTRAINTS",
    "BalancedRate",
    "BoundedGroupLoss",
    "CalibrationParity",
    "Churn",
    "Constraint",
    "ConstraintLike",
    "Coverage",
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
    "PredictiveParity",
    "QueryParity",
    "ROCParity",
    "RateParity",
    "WeakPartialDemographicParity",
    "resolve_constraints",
]

ConstraintLike = str | Constraint | Sequence[str | Constraint] | None
"""What an estimator accepts as `constraint`: a name, an object, a list of these, or None."""

CONSTRAINTS: dict[str, type[Constraint]] = {
    "demographic_parity": DemographicParity,
    "equal_opportunity": EqualOpportunity,
    "predictive_equality": PredictiveEquality,
    "equalized_odds": EqualizedOdds,
    "error_rate_parity": ErrorRateParity,
    "calibration_parity": CalibrationParity,
    "predictive_parity": PredictiveParity,
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
    "query_parity": QueryParity,
    "coverage": Coverage,
    "churn": Churn,
}
CLASSIFIER_CONSTRAINTS: dict[str, type[Constraint]] = {
    name: kind for name, kind in CONSTRAINTS.items() if not kind.needs_queries
}
"""The constraints that classifiers take; all others need queries, hence a ranker."""


def resolve_constraints(given: object, **defaults: object) -> list[Constraint]:
    """Return the constraints that a user names or passes.

    Parameters
    ----------
    given : str, Constraint, list of these or None
        An estimator's parameter `constraint`.
    **defaults
        Values for parameters that a constraint leaves at None, such as ``kappa=0.05``.

    Raises
    ------
    ValueError
        If a name is unknown; the message lists the valid ones. If a list is empty, or the
        tolerance of a constraint is not valid.
    TypeError
        If something else is passed.

    Examples
    --------
    >>> from fairconstrained.constraints import EqualizedOdds, resolve_constraints
    >>> resolve_constraints(["demographic_parity", EqualizedOdds(kappa=0.1)], kappa=0.05)
    [DemographicParity(kappa=0.05), EqualizedOdds(kappa=0.1)]
    """
    if given is None:
        return []
    several = given if isinstance(given, list | tuple) else [given]
    if not several:
        raise ValueError(
            f"constraint={given!r} names no constraint: name one, such as 'demographic_parity', or "
            "pass None for the model without constraints."
        )
    constraints = [resolve("constraint", each, CONSTRAINTS, Constraint) for each in several]
    constraints = [each.with_defaults(**defaults) for each in constraints]
    for each in constraints:
        each.checked_kappa()  # reports would say that they cannot measure it
    return constraints
