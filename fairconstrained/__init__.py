"""Fair classifiers under explicit constraints, as scikit-learn estimators.

Public names are imported on first use. Workers of a cluster, which import what reads rows, do
without the estimators and without scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from fairconstrained.data.attributes import with_strata
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
    from fairconstrained.model_selection.refit import best_score_within
    from fairconstrained.model_selection.scorers import make_fairness_scorer
    from fairconstrained.reporting.comparison import RankerComparison, compare, compare_rankers
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
    "GeneralizationWarning",
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
    "with_strata",
]

_MODULES = {
    "constraints": (
        "BoundedGroupLoss",
        "DemographicParity",
        "DisparateImpact",
        "EqualizedOdds",
        "EqualOpportunity",
        "ErrorRateParity",
        "MinorityRate",
        "PredictiveEquality",
    ),
    "data.attributes": ("with_strata",),
    "datasets": ("make_biased_classification", "make_biased_ranking"),
    "estimators.boosting": ("FairBoostingClassifier",),
    "estimators.logistic": ("FairHingeClassifier", "FairLogisticClassifier"),
    "estimators.neyman_pearson": ("NeymanPearsonClassifier",),
    "estimators.network": ("FairNetworkClassifier",),
    "estimators.ranker_models": ("BoostedScores",),
    "estimators.ranker": ("FairRanker",),
    "estimators.score_thresholds": ("FairThresholds",),
    "estimators.thresholds": ("SelectionRate",),
    "exceptions": (
        "ConstantDecisionWarning",
        "ConvergenceWarning",
        "GeneralizationWarning",
        "IncompatibleSolverError",
        "InfeasibleConstraintWarning",
        "InputWarning",
        "VacuousConstraintWarning",
    ),
    "model_selection.cv": ("FairLogisticClassifierCV",),
    "model_selection.path": ("FairnessPath",),
    "model_selection.path_fitting": ("fairness_path",),
    "model_selection.refit": ("best_score_within",),
    "model_selection.scorers": ("make_fairness_scorer",),
    "reporting.comparison": ("RankerComparison", "compare", "compare_rankers"),
    "reporting.report": ("FairnessReport", "fairness_report"),
}
_PACKAGES = (
    "constraints",
    "datasets",
    "deployment",
    "domains",
    "exceptions",
    "functions",
    "metrics",
    "model_selection",
    "objectives",
    "penalties",
    "plotting",
    "solvers",
)
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Return a public object or a public package, which is imported on first use."""
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
