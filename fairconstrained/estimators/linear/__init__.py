"""Linear classifiers."""

from fairconstrained.estimators.linear.logistic import FairHingeClassifier, FairLogisticClassifier
from fairconstrained.estimators.linear.neyman_pearson import NeymanPearsonClassifier

__all__ = ["FairHingeClassifier", "FairLogisticClassifier", "NeymanPearsonClassifier"]
