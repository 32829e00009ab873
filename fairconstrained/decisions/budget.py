"""What a search for a model whose decisions meet a bound may cost, and how it proceeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SearchBudget:
    """Limits and step sizes of the search on decisions.

    Costs are multiples of the data passes of the fit on scores, which the search starts from.

    Attributes
    ----------
    least_passes : float, default=25.0
        The least number of data passes that counts as the fit's: a search after a short fit may
        cost more than these multiples of it, as what a search needs does not fall with the fit's.
    most_passes : float, default=1000.0
        The largest number of data passes that counts as the fit's: a search after a long fit costs
        less than these multiples of it.
    max_solves : int, default=6
        The largest number of problems with other tolerances that are solved.
    solve_passes : float, default=1.5
        The cost after which no further problem is solved.
    ranking_passes : float, default=2.6
        The same for constraints on rankings, whose solutions cannot be repaired.
    unmet_passes : float, default=2000.0
        The least number of data passes after which no further problem is solved as long as only a
        constant model meets the bound.
    cutoff_passes : float, default=2.0
        The cost at which a solve in progress ends.
    repair_passes : float, default=2.6
        The cost, with a line search counted as one data pass, after which no model is repaired.
    solve_tol_factor : float, default=10.0
        The tolerance of these solves as a multiple of the solver's.
    speed_range : tuple of float, default=(0.3, 4.0)
        Bounds on the estimated ratio between the change of a rate of decisions and the change of
        its surrogate.
    steep_speed : float, default=2.0
        The ratio above which the surrogate is made steeper by the same factor.
    steepening : float, default=4.0
        The further factor for all surrogates after a solve without sufficient decrease.
    sufficient_decrease : float, default=0.5
        The share of the violation on decisions that a solve may leave.
    n_repaired : int, default=3
        The number of models that are repaired.
    n_repairs : int, default=12
        The largest number of repair steps for each of them.
    window : float, default=0.2
        Scores within this distance of 0 estimate the density of scores at the threshold.
    active : float, default=0.02
        Constraints within this distance of their bound are treated as active.
    accuracy_weight : float, default=0.5
        The decrease of the violation that is worth one unit of accuracy while it is positive.
    few_rows : float, default=50.0
        Rates of fewer rows are estimated with soft labels, too, see
        :class:`~fairconstrained.decisions.soft_labels.SoftLabels`.
    price : float, default=0.2
        The accuracy that one unit of expected violation on new rows is worth: with 0.2, a gap that
        is expected to be smaller by 0.05 is worth 0.01.
    repair_margins : tuple of float, default=(0.002, 0.006, 0.012)
        The distances below the bound that repair steps aim at, in this order.
    repair_windows : tuple of float, default=(0.2, 0.1, 0.4)
        The bandwidths of the density of scores in repair steps, in this order.
    repair_range : tuple of float, default=(-1.0, 4.0)
        The multiples of a repair step that are searched.
    line_range : tuple of float, default=(-0.5, 1.5)
        The line through two models that is searched; they are at 0 and 1.
    n_points : int, default=512
        The points of a line at which decisions are counted.
    n_evaluated_points : int, default=24
        The same where a constraint has to be evaluated at every point, and rows are many.
    evaluated_scores : float, default=1e5
        The scores at all these points together up to which more points are evaluated, at most
        `n_points`.
    n_losses : int, default=8
        The points of a line, of equal accuracy, at which the loss is evaluated.
    margins : tuple of float, default=(4.0, 2.0, 1.0, 0.3)
        With `confidence`: how far below the limit of the test the candidates are fitted, in
        standard deviations of the gap on held-out rows, the largest first.
    max_margin : float, default=0.9
        The largest share of the distance between equal rates and the bound that a margin takes.
    sufficient : float, default=1.3
        The distance, in the same units, that is left below the limit when the rows suffice.
    continuation : tuple of float, default=()
        With several classes: the sharpness of the soft-max in the solves with other tolerances.
    n_refined : int, default=3
        The number of models near which a search in one variable after another is made.
    shortfall : float, default=0.02
        With one score per row, this search is made only if a model near the bound is more accurate
        by this than the best model that meets the bound.
    refinement_passes : float, default=30.0
        The cost, with a line search counted as one data pass, after which this search ends.
    n_restarts : int, default=4
        How often this search is made, with other orders of the variables.
    n_refinements : int, default=4
        The rounds of that search for each weight.
    refinement_weights : tuple of float, default=(0.5, 0.25, 0.1, 0.03, 0.01)
        The weights of the accuracy in that search, one after another; see `accuracy_weight`.

    Examples
    --------
    >>> from fairconstrained.decisions.budget import SearchBudget
    >>> SearchBudget(max_solves=2).max_solves
    2
    """

    least_passes: float = 25.0
    most_passes: float = 1000.0
    max_solves: int = 6
    solve_passes: float = 1.5
    ranking_passes: float = 2.6
    unmet_passes: float = 2000.0
    cutoff_passes: float = 2.0
    repair_passes: float = 2.6
    solve_tol_factor: float = 10.0
    speed_range: tuple[float, float] = (0.3, 4.0)
    steep_speed: float = 2.0
    steepening: float = 4.0
    sufficient_decrease: float = 0.5
    n_repaired: int = 3
    n_repairs: int = 12
    window: float = 0.2
    active: float = 0.02
    accuracy_weight: float = 0.5
    few_rows: float = 50.0
    price: float = 0.2
    repair_margins: tuple[float, ...] = (0.002, 0.006, 0.012)
    repair_windows: tuple[float, ...] = (0.2, 0.1, 0.4)
    repair_range: tuple[float, float] = (-1.0, 4.0)
    line_range: tuple[float, float] = (-0.5, 1.5)
    n_points: int = 512
    n_evaluated_points: int = 24
    evaluated_scores: float = 1e5
    n_losses: int = 8
    margins: tuple[float, ...] = (4.0, 2.0, 1.0, 0.3)
    max_margin: float = 0.9
    sufficient: float = 1.3
    continuation: tuple[float, ...] = ()
    n_refined: int = 3
    shortfall: float = 0.02
    refinement_passes: float = 30.0
    n_restarts: int = 4
    n_refinements: int = 4
    refinement_weights: tuple[float, ...] = (0.5, 0.25, 0.1, 0.03, 0.01)


SEVERAL_CLASSES = SearchBudget(
    least_passes=50.0,
    n_evaluated_points=48,
    max_solves=5,
    solve_passes=6.0,
    ranking_passes=8.0,
    cutoff_passes=8.0,
    repair_passes=8.0,
    n_repairs=3,
    refinement_passes=np.inf,
    n_restarts=1,
    n_refinements=2,
    refinement_weights=(0.5, 0.25, 0.1),
    continuation=(2.0, 4.0, 8.0, 16.0, 32.0),
)
"""The budget for several classes, whose intercepts are searched one after another."""

SHARDED = SearchBudget(n_evaluated_points=48)
"""The budget for rows in shards, where all points of a line are evaluated in the same reads."""
