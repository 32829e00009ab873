"""Thresholds on the scores of any classifier, chosen under constraints on the decisions."""

from fairconstrained.estimators.score_thresholds.classifier import FairThresholds

__all__ = ["FairThresholds"]
