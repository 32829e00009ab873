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
from fairconstrained.datasets import make_biased_classification, make_biased_ranking
from fairconstrained.estimators.boosting import FairBoostingClassifier
from fairconstrained.estimators.linear.logistic import FairLogisticClassifier
from fairconstrained.estimators.linear.neyman_pearson import NeymanPearsonClassifier
from fairconstrained.estimators.linear.svm import FairHingeClassifier
from fairconstrained.estimators.network.classifier import FairNetworkClassifier
from fairconstrained.estimators.ranking.boosted import BoostedScores
from fairconstrained.estimators.ranking.ranker import FairRanker
from fairconstrained.estimators.score_thresholds import FairThresholds
from fairconstrained.estimators.thresholds import SelectionRate
from fairconstrained.exceptions import (
    ConstantDecisionWarning,
    ConvergenceWarning,
    IncompatibleSolverError,
    InfeasibleConstraintWarning,
    InputWarning,
    VacuousConstraintWarning,
)
from fairconstrained.model_selection.cv import FairLogisticClassifierCV
from fairconstrained.model_selection.path import FairnessPath
from fairconstrained.model_selection.path_fitting import fairness_path
from fairconstrained.model_selection.refit import best_score_within
from fairconstrained.model_selection.scorers import make_fairness_scorer
from fairconstrained.reporting.comparison import compare
from fairconstrained.reporting.rankers import RankerComparison, compare_rankers
from fairconstrained.reporting.report import FairnessReport, fairness_report

__version__ = "0.2.0"

__all__ = [
    "BoostedScores",
    "BoundedGroupLoss",
    "ConstantDecisionWarning",
    "ConvergenceWarning",
    "DemographicParity",
    "DisparateImpact",
    "EqualOpportunity",
    "EqualizedOdds",
    "ErrorRateParity",
    "FairBoostingClassifier",
    "FairHingeClassifier",
    "FairLogisticClassifier",
    "FairLogisticClassifierCV",
    "FairNetworkClassifier",
    "FairRanker",
    "FairThresholds",
    "FairnessPath",
    "FairnessReport",
    "IncompatibleSolverError",
    "InfeasibleConstraintWarning",
    "InputWarning",
    "MinorityRate",
    "NeymanPearsonClassifier",
    "PredictiveEquality",
    "RankerComparison",
    "SelectionRate",
    "VacuousConstraintWarning",
    "__version__",
    "best_score_within",
    "compare",
    "compare_rankers",
    "fairness_path",
    "fairness_report",
    "make_biased_classification",
    "make_biased_ranking",
    "make_fairness_scorer",
]
