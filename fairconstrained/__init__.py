"""Fair classifiers under explicit constraints, as scikit-learn estimators.

Public names are imported on first use; `__init__.pyi` has them for type checkers. Workers of a
cluster, which import what reads rows, do without the estimators and without scikit-learn.
"""

from importlib import import_module
from typing import Any

__version__ = "0.3.0.dev0"

_MODULES = {
    "constraints": (
        "BoundedGroupLoss",
        "DemographicParity",
        "Churn",
        "Coverage",
        "DisparateImpact",
        "EqualizedOdds",
        "EqualOpportunity",
        "ErrorRateParity",
        "MinorityRate",
        "PredictiveEquality",
    ),
    "data.attributes": ("with_strata",),
    "data.probabilities": ("GroupProbabilities",),
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
    "model_selection.search": ("best_score_within",),
    "model_selection.scorers": ("make_fairness_scorer",),
    "reporting.alternatives": ("Alternatives", "find_alternatives"),
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

__all__ = [*sorted(_HOMES), "__version__"]


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
