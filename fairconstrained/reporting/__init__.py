"""Fairness reports of fitted classifiers, as text, tables, Markdown, JSON and HTML pages."""
