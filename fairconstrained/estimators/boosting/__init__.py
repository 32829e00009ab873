"""Boosted trees under fairness constraints. LightGBM is imported when a model is fitted."""
