"""The classifiers, and what a fit is made of."""
