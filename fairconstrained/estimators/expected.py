"""What the search on decisions knows of constraints on new rows."""

from __future__ import annotations

from fairconstrained.data.validation import TrainingData
from fairconstrained.decisions.budget import SearchBudget
from fairconstrained.decisions.soft_labels import SoftLabels, has_few_rows
from fairconstrained.estimators.binding import Unconstrained
from fairconstrained.problem.composite import CompositeFunction
from fairconstrained.problem.problem import Problem


def expected_constraints(
    problem: Problem, data: TrainingData, unconstrained: Unconstrained, budget: SearchBudget
) -> tuple[CompositeFunction, ...]:
    """Return estimates of the constraints on rates of few rows, none where all cells are large.

    Parameters
    ----------
    problem : Problem
        The constraints on the training rows.
    data : TrainingData
        The rows.
    unconstrained : Unconstrained
        The model whose scores give the probability of the label.
    budget : SearchBudget
        Its `few_rows`.
    """
    in_memory = all(model.in_memory for model in problem.models)
    if not in_memory or data.several_classes or data.groups is None:
        return ()
    if data.y.min() == data.y.max() or not has_few_rows(problem, budget.few_rows):
        return ()
    scores, _ = unconstrained.weighted_scores(data)
    labels = SoftLabels.of(scores, data.y, data.groups.codes, data.sample_weight)
    return labels.constraints(problem, budget.few_rows)
