"""Linear classifiers."""
