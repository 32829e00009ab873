"""The step sizes of switching subgradient methods, and when a point counts as feasible."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

from fairconstrained.utils.parameter_constraints import NON_NEGATIVE, POSITIVE, ParameterConstraints
from fairconstrained.utils.parameters import Parametrized


class StepRule(Parametrized, ABC):
    """The step sizes, and the value up to which a point counts as feasible.

    Attributes
    ----------
    averages : bool
        Whether the answer is the average of the feasible points, weighted by k + 1, or the best.
    """

    averages: ClassVar[bool] = False

    @abstractmethod
    def tolerance(self, k: int, tol: float) -> float:
        """Return the largest constraint value at which step k decreases the objective.

        Parameters
        ----------
        k : int
            The step, from 0.
        tol : float
            The violation of the answer.
        """

    @abstractmethod
    def descent(self, k: int, tol: float, norm_squared: float, curvature: float) -> float:
        """Return the length of a step on the objective.

        Parameters
        ----------
        k : int
            The step, from 0.
        tol : float
            The tolerance of step k.
        norm_squared : float
            The squared norm of the subgradient, > 0.
        curvature : float
            That of the objective at the start, > 0.
        """

    @abstractmethod
    def restoration(self, k: int, level: float, norm_squared: float) -> float:
        """Return the length of a step on the constraint whose value is `level` > 0."""


@dataclass(eq=False, repr=False)
class PolyakSteps(StepRule):
    r"""Steps of diminishing aims, limited by the curvature of the objective; the default.

    .. math::
        \min\Big\{\frac{\epsilon_k}{\|f'\|^2}, \frac{1}{L}\Big\}
        \quad\text{and}\quad \frac{\min\{G, \epsilon_k\}}{\|G'\|^2}, \qquad
        \epsilon_k = \frac{\text{first}}{\sqrt{1 + k / 10}},

    with L the curvature of the objective at the start. A point counts as feasible if it meets the
    tolerance `tol`, from the first step on. Steps on the objective are as long as with a larger
    tolerance; the next steps on the constraint lead back.

    Parameters
    ----------
    first : float, default=0.1
        The decrease of the objective or of the largest constraint that step 0 aims at, at most.

    References
    ----------
    IDCA, algorithms 2 and 3, for the quotients.

    Examples
    --------
    >>> from fairconstrained.solvers import PolyakSteps
    >>> PolyakSteps(first=0.1).descent(k=0, tol=1e-4, norm_squared=4.0, curvature=1.0)
    0.025
    """

    _parameter_constraints: ClassVar[ParameterConstraints] = {"first": [NON_NEGATIVE]}

    first: float = 0.1

    def tolerance(self, k: int, tol: float) -> float:
        """Return the tolerance asked for."""
        return tol

    def descent(self, k: int, tol: float, norm_squared: float, curvature: float) -> float:
        """Return ``min(epsilon_k / |f'|^2, 1 / L)``."""
        return min(self._aim(k) / norm_squared, 1.0 / curvature)

    def restoration(self, k: int, level: float, norm_squared: float) -> float:
        """Return ``min(G, epsilon_k) / |G'|^2``: contradictory constraints lead nowhere."""
        return min(level, self._aim(k)) / norm_squared

    def _aim(self, k: int) -> float:
        return self.first / sqrt(1.0 + k / 10.0)


class _TolerancePolyak(StepRule):
    """Polyak's steps as in the papers: epsilon_k is the tolerance and the aim of the steps."""

    def descent(self, k: int, tol: float, norm_squared: float, curvature: float) -> float:
        """Return ``epsilon_k / |f'|^2``."""
        return tol / norm_squared

    def restoration(self, k: int, level: float, norm_squared: float) -> float:
        """Return ``G / |G'|^2``."""
        return level / norm_squared


@dataclass(eq=False, repr=False)
class StaticTolerance(_TolerancePolyak):
    r"""Steps :math:`\epsilon / \|f'\|^2` where :math:`G \le \epsilon`, else :math:`G / \|G'\|^2`.

    The answer violates the constraints by up to epsilon.

    Parameters
    ----------
    epsilon : float, default=1e-3
        The largest constraint value of a point that counts as feasible, > 0. The paper tries 1e-4
        to 1e-3.

    References
    ----------
    IDCA, algorithm 3, "static"; Huang and Lin 2023.

    Examples
    --------
    >>> from fairconstrained.solvers import StaticTolerance, SwitchingSubgradient
    >>> StaticTolerance(1e-3).restoration(k=0, level=0.5, norm_squared=4.0)
    0.125
    >>> solver = SwitchingSubgradient(StaticTolerance(1e-3))
    """

    _parameter_constraints: ClassVar[ParameterConstraints] = {"epsilon": [NON_NEGATIVE]}

    epsilon: float = 1e-3

    def tolerance(self, k: int, tol: float) -> float:
        """Return epsilon."""
        return self.epsilon


@dataclass(eq=False, repr=False)
class DiminishingTolerance(_TolerancePolyak):
    r"""The steps of :class:`StaticTolerance` with :math:`\epsilon_k = c / (k + 1)`.

    Parameters
    ----------
    c : float, default=0.5
        The factor c > 0 of the tolerance c / (k + 1). The paper tries 0.2, 0.5, 1 and 2.

    References
    ----------
    IDCA, algorithm 3, "diminishing".

    Examples
    --------
    >>> from fairconstrained.solvers import DiminishingTolerance
    >>> [DiminishingTolerance(c=0.5).tolerance(k, tol=1e-4) for k in (0, 1, 4)]
    [0.5, 0.25, 0.1]
    """

    _parameter_constraints: ClassVar[ParameterConstraints] = {"c": [POSITIVE]}

    c: float = 0.5

    def tolerance(self, k: int, tol: float) -> float:
        """Return c / (k + 1)."""
        return self.c / (k + 1)


@dataclass(eq=False, repr=False)
class StronglyConvexSteps(StepRule):
    r"""The steps :math:`2 / (\mu (k + 2))` of IPC's algorithm 2, with its weighted average.

    Parameters
    ----------
    modulus : float
        The strong convexity constant mu > 0; the paper's is rho^ - rho = rho^ / 2.
    epsilon : float or None, default=None
        The largest value of a feasible point, the paper's eps^ squared; None for the tolerance.

    References
    ----------
    IPC, algorithm 2.

    Examples
    --------
    >>> from fairconstrained.solvers import StronglyConvexSteps
    >>> steps = StronglyConvexSteps(modulus=0.5)
    >>> [steps.descent(k, tol=1e-4, norm_squared=1.0, curvature=0.0) for k in (0, 2)]
    [2.0, 1.0]
    """

    averages: ClassVar[bool] = True

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "modulus": [POSITIVE],
        "epsilon": [NON_NEGATIVE, None],
    }

    modulus: float
    epsilon: float | None = None

    def tolerance(self, k: int, tol: float) -> float:
        """Return epsilon, or the tolerance asked for."""
        return tol if self.epsilon is None else self.epsilon

    def descent(self, k: int, tol: float, norm_squared: float, curvature: float) -> float:
        """Return 2 / (mu (k + 2))."""
        return 2.0 / (self.modulus * (k + 2))

    def restoration(self, k: int, level: float, norm_squared: float) -> float:
        """Return 2 / (mu (k + 2))."""
        return 2.0 / (self.modulus * (k + 2))
