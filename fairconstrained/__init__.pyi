"""The public names, for type checkers; `__init__.py` imports them on first use."""

from typing import Any

from fairconstrained.constraints import (
    BoundedGroupLoss,
    Churn,
    Coverage,
    DemographicParity,
    DisparateImpact,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRateParity,
    MinorityRate,
    PredictiveEquality,
)
from fairconstrained.data.attributes import with_strata
from fairconstrained.data.probabilities import GroupProbabilities
from fairconstrained.datasets import make_biased_classification, make_biased_ranking
from fairconstrained.estimators.boosting import FairBoostingClassifier
from fairconstrained.estimators.logistic import FairHingeClassifier, FairLogisticClassifier
from fairconstrained.estimators.network import FairNetworkClassifier
from fairconstrained.estimators.neyman_pearson import NeymanPearsonClassifier
from fairconstrained.estimators.ranker import FairRanker
from fairconstrained.estimators.ranker_models import BoostedScores
from fairconstrained.estimators.score_thresholds import FairThresholds
from fairconstrained.estimators.thresholds import SelectionRate
from fairconstrained.exceptions import (
    ConstantDecisionWarning,
    ConvergenceWarning,
    GeneralizationWarning,
    IncompatibleSolverError,
    InfeasibleConstraintWarning,
    InputWarning,
    VacuousConstraintWarning,
)
from fairconstrained.model_selection.cv import FairLogisticClassifierCV
from fairconstrained.model_selection.path import FairnessPath
from fairconstrained.model_selection.path_fitting import fairness_path
from fairconstrained.model_selection.scorers import make_fairness_scorer
from fairconstrained.model_selection.search import best_score_within
from fairconstrained.reporting.alternatives import Alternatives, find_alternatives
from fairconstrained.reporting.comparison import RankerComparison, compare, compare_rankers
from fairconstrained.reporting.report import FairnessReport, fairness_report

__version__: str

__all__ = [
    "Alternatives",
    "BoostedScores",
    "BoundedGroupLoss",
    "Churn",
    "ConstantDecisionWarning",
    "ConvergenceWarning",
    "Coverage",
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
    "GeneralizationWarning",
    "GroupProbabilities",
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
    "find_alternatives",
    "make_biased_classification",
    "make_biased_ranking",
    "make_fairness_scorer",
    "with_strata",
]

def __getattr__(name: str) -> Any: ...  # the public packages
