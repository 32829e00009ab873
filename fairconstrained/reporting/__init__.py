"""The fairness report and its pages."""
