"""Fair classifiers under explicit constraints, as scikit-learn estimators."""

from fairconstrained.constraints import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    PredictiveEquality,
)
from fairconstrained.datasets import make_biased_classification
from fairconstrained.exceptions import (
    ConvergenceWarning,
    IncompatibleSolverError,
    InfeasibleConstraintWarning,
    VacuousConstraintWarning,
)
from fairconstrained.linear_model import FairLogisticClassifier

__version__ = "0.1.0"

__all__ = [
    "ConvergenceWarning",
    "DemographicParity",
    "EqualOpportunity",
    "EqualizedOdds",
    "FairLogisticClassifier",
    "IncompatibleSolverError",
    "InfeasibleConstraintWarning",
    "PredictiveEquality",
    "VacuousConstraintWarning",
    "__version__",
    "make_biased_classification",
]
