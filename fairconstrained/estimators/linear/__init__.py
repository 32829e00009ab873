"""Linear classifiers."""

from fairconstrained.estimators.linear.logistic import FairLogisticClassifier
from fairconstrained.estimators.linear.neyman_pearson import NeymanPearsonClassifier
from fairconstrained.estimators.linear.svm import FairHingeClassifier

__all__ = ["FairHingeClassifier", "FairLogisticClassifier", "NeymanPearsonClassifier"]
