"""Bounds on the predictions of a model, on the training rows and in the population."""
