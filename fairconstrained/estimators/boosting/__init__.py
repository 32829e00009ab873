"""Boosted trees under fairness constraints. LightGBM is imported when a model is fitted."""

from fairconstrained.estimators.boosting.classifier import FairBoostingClassifier

__all__ = ["FairBoostingClassifier"]
