"""Models: from weights to scores, and from weights on the scores back to gradients."""

from fairconstrained.models.linear import LinearModel

__all__ = ["LinearModel"]
