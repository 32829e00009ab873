"""A point that a solver offers, and its measures."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairconstrained.problem.evaluation import Evaluation
from fairconstrained.problem.kkt import KKT, certify
from fairconstrained.problem.multipliers import Multipliers
from fairconstrained.solvers.result import Status
from fairconstrained.solvers.state import SolverState
from fairconstrained.utils.typing import Array


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point that a solver offers for measurement.

    Attributes
    ----------
    at : Evaluation
        The problem at the point.
    multipliers : ndarray, Multipliers or None
        The solver's multipliers; None has them estimated.
    iteration : int
        Iterations made so far.
    state : SolverState or None
        What a warm start takes over.
    status : Status or None
        Set when the solver cannot go on.
    rounded : Evaluation or None
        For problems with kinks: the problem with its kinks rounded, at the same point, whose
        gradient is the subgradient that the solver means (see :meth:`KKT.of`).
    note : str
        What the message of the result says in addition.
    """

    at: Evaluation
    multipliers: Array | Multipliers | None
    iteration: int
    state: SolverState | None = None
    status: Status | None = None
    rounded: Evaluation | None = None
    note: str = ""


@dataclass(frozen=True, eq=False)
class Measured:
    """An iterate with its measures: what callbacks receive and the loop compares."""

    iterate: Iterate
    certified: Array | Multipliers
    objective: float
    kkt: KKT

    @property
    def multipliers(self) -> Array:
        """The multipliers of the certificate, shape (n_constraints,)."""
        known = self.certified
        return known.dense() if isinstance(known, Multipliers) else known

    @classmethod
    def of(cls, iterate: Iterate, tol: float) -> Measured:
        """Measure an iterate."""
        at = iterate.at
        multipliers, kkt = certify(at, iterate.multipliers, tol, rounded=iterate.rounded)
        return cls(iterate, multipliers, at.objective, kkt)

    def without_rows(self) -> Measured:
        """Return the same without the forward passes of its evaluation."""
        bare = replace(self.iterate, at=self.iterate.at.without_rows(), rounded=None)
        return replace(self, iterate=bare)

    @property
    def violation(self) -> float:
        """The violation of the constraints."""
        return self.kkt.violation

    @property
    def kkt_residual(self) -> float:
        """The KKT residual."""
        return self.kkt.residual

    def better_than(self, other: Measured | None, tol: float) -> bool:
        """Return whether this one is to be kept: feasible first, then by objective."""
        if other is None:
            return True
        if min(self.violation, other.violation) > tol:
            return self.violation < other.violation
        if max(self.violation, other.violation) > tol:
            return self.violation <= tol
        return self.objective <= other.objective
