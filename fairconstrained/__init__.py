"""Fair classifiers under explicit constraints, as scikit-learn estimators."""

from fairconstrained.constraints import (
    BoundedGroupLoss,
    DemographicParity,
    DisparateImpact,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRateParity,
    MinorityRate,
    PredictiveEquality,
)
from fairconstrained.datasets import make_biased_classification
from fairconstrained.exceptions import (
    ConstantDecisionWarning,
    ConvergenceWarning,
    IncompatibleSolverError,
    InfeasibleConstraintWarning,
    VacuousConstraintWarning,
)
from fairconstrained.frontier import FairnessPath
from fairconstrained.hinge import FairHingeClassifier
from fairconstrained.linear_model import FairLogisticClassifier
from fairconstrained.model_selection import FairLogisticClassifierCV
from fairconstrained.multiclass import NeymanPearsonClassifier
from fairconstrained.path import fairness_path
from fairconstrained.report import FairnessReport, fairness_report
from fairconstrained.scorers import best_score_within, make_fairness_scorer

__version__ = "0.1.0"

__all__ = [
    "BoundedGroupLoss",
    "ConstantDecisionWarning",
    "ConvergenceWarning",
    "DemographicParity",
    "DisparateImpact",
    "EqualOpportunity",
    "EqualizedOdds",
    "ErrorRateParity",
    "FairHingeClassifier",
    "FairLogisticClassifier",
    "FairLogisticClassifierCV",
    "FairnessPath",
    "FairnessReport",
    "IncompatibleSolverError",
    "InfeasibleConstraintWarning",
    "MinorityRate",
    "NeymanPearsonClassifier",
    "PredictiveEquality",
    "VacuousConstraintWarning",
    "__version__",
    "best_score_within",
    "fairness_path",
    "fairness_report",
    "make_biased_classification",
    "make_fairness_scorer",
]
