"""The classifiers, and the fit that they share with paths and searches.

A model and its estimator belong here; what compares several fits belongs in ``model_selection``.
"""
