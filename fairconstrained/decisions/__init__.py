"""Bounds on the predictions of a model, on the training rows and in the population.

The search for models and thresholds by their predictions, and tests on held-out rows, belong here;
what is minimised on scores belongs in ``problem`` and ``solvers``.
"""
