"""Thresholds on the scores of any classifier, chosen under constraints on the decisions."""
