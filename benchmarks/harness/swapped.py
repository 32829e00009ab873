"""The least unfairness for a bound on the loss, in the papers' form: a maximum as the objective."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, softmax

from fairconstrained.problem.problem import Problem
from fairconstrained.terms.base import NO_AUXILIARY, Term
from fairconstrained.utils.arrays import Array


def _of_term(name: str):
    """Return an attribute or a method that is the term's."""
    return property(lambda maximum: getattr(maximum.term, name))


@dataclass(frozen=True, eq=False)
class Maximum(Term):
    r"""The largest output of a term, :math:`\max_j T_j(s, a)`.

    Its kinks can be rounded: with a width a the maximum is replaced by
    a log sum_j exp(T_j / a) - a log(m), which is at most a log(m) smaller, where m is the number of
    outputs.

    Attributes
    ----------
    term : Term
        The outputs.
    width : float
        a; with 0 the maximum has its kinks.
    """

    term: Term
    width: float = 0.0

    n_outputs = 1
    n_rows, n_auxiliary = _of_term("n_rows"), _of_term("n_auxiliary")
    convex, smoothable = _of_term("convex"), _of_term("smoothable")
    batchable, auxiliary_start = _of_term("batchable"), _of_term("auxiliary_start")
    weak_curvature, forward = _of_term("weak_curvature"), _of_term("forward")
    strata, blocks = _of_term("strata"), _of_term("blocks")

    @property
    def names(self) -> tuple[str, ...]:
        """A description of the output."""
        return (f"the largest of {self.term.n_outputs}: {', '.join(self.term.names[:2])} ...",)

    @property
    def smooth(self) -> bool:
        """Whether the gradients are continuous: those of one output, or of a rounded maximum."""
        return self.term.smooth and (self.width > 0.0 or self.term.n_outputs == 1)

    def smoothed(self, width: float) -> "Maximum":
        """Return the rounded maximum of the term, whose kinks are rounded as well."""
        return Maximum(self.term.smoothed(width), width)

    def zero_one(self) -> "Maximum":
        """Return the largest output of the zero-one version."""
        return replace(self, term=self.term.zero_one())

    def take(self, rows: Array, weights: Array) -> "Maximum":
        """Return the largest output of the term on some rows."""
        return replace(self, term=self.term.take(rows, weights))

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


def swapped(problem: Problem, bound: float) -> Problem:
    r"""Return the swapped problem in the papers' form: one objective, one constraint.

    .. math::
        \min_{w \in W} \max_j g_j(w) \quad \text{s.t.} \quad f(w) \le \text{bound}.

    It has the solutions of :meth:`Problem.epigraph`, without the additional variable and with a
    single constraint, but its objective has kinks: 3S-Econ, Problem 1 and equation (5). The
    constraints must be the outputs of one term.
    """
    (part,) = problem.constraints
    assert part.term is not None
    limit = problem.objective.shifted(-bound)
    return replace(problem, objective=replace(part, term=Maximum(part.term)), constraints=(limit,))
