"""What reports and displays need of a fitted model: scores by group, verdicts on constraints.

What is computed from a fitted model for readers belongs here; how it is shown belongs in
``reporting`` and ``plotting``.
"""
