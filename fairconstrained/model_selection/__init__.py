"""Choosing kappa and other hyperparameters: paths of models, cross-validation, scorers.

What fits one model belongs in ``estimators``; what compares several of them belongs here.
"""

from fairconstrained.model_selection.cv import FairLogisticClassifierCV
from fairconstrained.model_selection.path import FairnessPath
from fairconstrained.model_selection.path_fitting import fairness_path
from fairconstrained.model_selection.scorers import make_fairness_scorer
from fairconstrained.model_selection.search import best_score_within

__all__ = [
    "FairLogisticClassifierCV",
    "FairnessPath",
    "best_score_within",
    "fairness_path",
    "make_fairness_scorer",
]
