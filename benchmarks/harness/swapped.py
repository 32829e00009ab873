"""The least unfairness for a bound on the loss, in the papers' form: a maximum as the objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, softmax

from fairconstrained.problem.problem import Problem
from fairconstrained.terms.base import NO_AUXILIARY, Pullback, Term
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class Maximum(Term):
    r"""The largest output :math:`\max_j c_j(s)` of a term.

    It has kinks where several outputs are largest; the derivative is then that of the first of
    them, a subgradient if the term is convex or smooth. Rounded over a width mu it is
    :math:`\mu \log \sum_j e^{c_j / \mu}`, less :math:`\mu \log m` for m outputs, so that it is
    nowhere above the maximum; its gradient is a mean of theirs.

    Parameters
    ----------
    term : Term
        c. Its abilities to be weakly convex and to be estimated from batches are kept. A batch
        estimates the statistics; the largest output of estimates is biased upwards.
    width : float, default=0.0
        mu; 0 for the maximum itself.

    References
    ----------
    3S-Econ, equation (5): the largest of the differences at 400 thresholds. Y. Nesterov, "Smooth
    minimization of non-smooth functions", Mathematical Programming 103 (2005), section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import DemographicParity
    >>> from benchmarks.harness.swapped import Maximum
    >>> parity = DemographicParity(0.0).bind(np.ones(4), np.array([0, 0, 1, 1]), np.ones(4))
    >>> Maximum(parity).value(np.array([2.0, 2.0, -2.0, -2.0])).round(3)
    array([0.762])
    """

    term: Term
    width: float = 0.0

    @property
    def n_rows(self) -> int:
        """The number of rows of the scores."""
        return self.term.n_rows

    @property
    def convex(self) -> bool:
        """Whether the term is convex."""
        return self.term.convex

    def weak_curvature(self) -> Array:
        """Return what makes every output of the term convex."""
        return self.term.weak_curvature()

    @property
    def n_outputs(self) -> int:
        """One."""
        return 1

    @property
    def names(self) -> Sequence[str]:
        """A description of the output."""
        return (f"the largest of {self.term.n_outputs}: {', '.join(self.term.names[:2])} ...",)

    @property
    def smooth(self) -> bool:
        """Whether the gradients are continuous: those of one output, or of a rounded maximum."""
        return self.term.smooth and (self.width > 0.0 or self.term.n_outputs == 1)

    @property
    def smoothable(self) -> bool:
        """Whether the term is smooth or can be smoothed."""
        return self.term.smoothable

    def smoothed(self, width: float) -> Maximum:
        """Return the rounded maximum of the term, whose own kinks are rounded as well."""
        return replace(self, term=self.term.smoothed(width), width=width)

    def subgradient_error(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> Array:
        """Return by how much the mean of the outputs is below the largest, and the term's error."""
        outputs = self.term.head(self.term.forward(scores, auxiliary)[0])
        below = outputs.max() - outputs + self.term.subgradient_error(scores, auxiliary)
        return np.array([self._weights(outputs) @ below])

    def _weights(self, outputs: Array) -> Array:
        """Return the weights of the outputs in the derivative, which sum to one."""
        if self.width > 0.0:
            return np.asarray(softmax(outputs / self.width))
        return np.asarray(np.arange(len(outputs)) == outputs.argmax(), dtype=float)

    @property
    def n_auxiliary(self) -> int:
        """The number of the term's own variables."""
        return self.term.n_auxiliary

    @property
    def auxiliary_start(self) -> Array:
        """The initial values of the auxiliary variables."""
        return self.term.auxiliary_start

    @property
    def batchable(self) -> bool:
        """Whether the term can be estimated from batches."""
        return self.term.batchable

    def forward(self, scores: Array, auxiliary: Array = NO_AUXILIARY) -> tuple[Array, Pullback]:
        """Return the statistics of the term and their pullback."""
        return self.term.forward(scores, auxiliary)

    def head(self, statistics: Array) -> Array:
        """Return the largest output, shape (1,)."""
        outputs = self.term.head(statistics)
        if self.width > 0.0:
            rounded = logsumexp(outputs / self.width) - np.log(len(outputs))
            return np.array([self.width * rounded])
        return np.array([outputs.max()])

    def head_vjp(self, statistics: Array, v: Array) -> Array:
        """Return v times the gradient of the largest output."""
        weights = self._weights(self.term.head(statistics))
        return self.term.head_vjp(statistics, float(v[0]) * weights)

    def zero_one(self) -> Maximum:
        """Return the largest output of the zero-one version."""
        return replace(self, term=self.term.zero_one())

    def take(self, rows: Array, weights: Array) -> Maximum:
        """Return the largest output of the term on some rows."""
        return replace(self, term=self.term.take(rows, weights))

    def strata(self) -> Array:
        """Return the codes of the term's cells."""
        return self.term.strata()

    def blocks(self) -> Array | None:
        """Return the rows that a batch of the term must hold together."""
        return self.term.blocks()


def swapped(problem: Problem, bound: float) -> Problem:
    r"""Return the swapped problem in the papers' form: one objective, one constraint.

    .. math::
        \min_{w \in W} \max_j g_j(w) \quad \text{s.t.} \quad f(w) \le \text{bound}.

    It has the solutions of :meth:`Problem.epigraph`, without the additional variable and with a
    single constraint, but its objective has kinks.

    Parameters
    ----------
    problem : Problem
        Its constraints are the outputs of one term.
    bound : float
        The largest objective allowed.

    Raises
    ------
    ValueError
        If the constraints are not the outputs of one term.

    References
    ----------
    3S-Econ, Problem 1 and equation (5).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.constraints import DemographicParity
    >>> from fairconstrained.functions.losses import Hinge
    >>> from fairconstrained.models.linear import LinearModel
    >>> from fairconstrained.problem import CompositeFunction, Problem
    >>> from benchmarks.harness.swapped import swapped
    >>> from fairconstrained.terms.cell_means import average
    >>> X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([-1, 1, -1, 1])
    >>> model, weight = LinearModel(X), np.ones(4)
    >>> parity = DemographicParity(0.0).bind(y, np.array([0, 0, 1, 1]), weight)
    >>> loss = CompositeFunction(model, average(Hinge(), y, weight))
    >>> problem = swapped(Problem(loss, (CompositeFunction(model, parity),)), bound=0.9)
    >>> at = problem.at(np.zeros(2))
    >>> at.objective, at.constraints.round(3)
    (0.0, array([0.1]))
    """
    terms = [part.term for part in problem.constraints]
    if len(terms) != 1 or terms[0] is None:
        raise ValueError(
            f"swapped: the constraints must be the outputs of one term; got {len(terms)} parts. "
            "Problem.epigraph(bound) takes any constraints."
        )
    limit = problem.objective.shifted(-bound)
    largest = replace(problem.constraints[0], term=Maximum(terms[0]))
    return replace(problem, objective=largest, constraints=(limit,))
