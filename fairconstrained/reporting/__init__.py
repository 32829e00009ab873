"""Fairness reports of fitted classifiers, as text, tables, Markdown, JSON and HTML pages.

What a report says, and how, belongs here; measures belong in ``metrics``, plots in ``plotting``.
"""
