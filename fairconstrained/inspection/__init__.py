"""What reports and displays need of a fitted model: scores by group, verdicts on constraints."""
