"""Fairness reports of fitted classifiers, as text, tables and HTML pages."""
