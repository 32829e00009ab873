"""The same problem once more, in NumPy and SciPy alone, to judge solutions independently.

Nothing here uses the package: the objective, the rates, their gradients and the optimality
conditions are written out, and scipy's SLSQP minimises.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.special import expit

EVENTS = {"demographic_parity": (None,), "equalized_odds": (0, 1)}  # labels that an event keeps


@dataclass
class PlainProblem:
    r"""Mean log loss + alpha/2 |coef|^2 with :math:`|E[\sigma(s)|a] - E[\sigma(s)|b]| \le \kappa`.

    The variables are the coefficients in the units of X, then the intercept. There are two groups.
    """

    X: Any
    y: np.ndarray
    groups: np.ndarray
    constraint: str
    kappa: float
    alpha: float
    _known: dict[bytes, np.ndarray] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        first, second = np.unique(self.groups)
        self.transpose = self.X.T.tocsr()
        self.labels = 2.0 * self.y - 1.0
        self.contrasts = []  # rows of weights: mean over one group minus mean over the other
        for label in EVENTS[self.constraint]:
            inside = np.ones(len(self.y), bool) if label is None else self.y == label
            a, b = inside & (self.groups == first), inside & (self.groups == second)
            self.contrasts.append(a / a.sum() - b / b.sum())

    def scores(self, w: np.ndarray) -> np.ndarray:
        key = w.tobytes()  # SLSQP asks for four things at one point
        if key not in self._known:
            self._known.clear()
            self._known[key] = self.X @ w[:-1] + w[-1]
        return self._known[key]

    def back(self, on_scores: np.ndarray) -> np.ndarray:
        return np.append(self.transpose @ on_scores, on_scores.sum())

    def objective(self, w: np.ndarray) -> float:
        loss = np.logaddexp(0.0, -self.labels * self.scores(w)).mean()
        return float(loss + 0.5 * self.alpha * np.sum(w[:-1] ** 2))

    def gradient(self, w: np.ndarray) -> np.ndarray:
        slope = -self.labels * expit(-self.labels * self.scores(w)) / len(self.y)
        return self.back(slope) + self.alpha * np.append(w[:-1], 0.0)

    def constraints(self, w: np.ndarray) -> np.ndarray:
        """Return g, feasible where <= 0: two per event."""
        rates = expit(self.scores(w))
        gaps = np.array([c @ rates for c in self.contrasts])
        return np.concatenate([gaps, -gaps]) - self.kappa

    def jacobian(self, w: np.ndarray) -> np.ndarray:
        rates = expit(self.scores(w))
        rows = np.array([self.back(c * rates * (1.0 - rates)) for c in self.contrasts])
        return np.concatenate([rows, -rows])

    def violation(self, w: np.ndarray) -> float:
        return float(max(self.constraints(w).max(), 0.0))

    def stationarity(self, w: np.ndarray) -> float:
        """Return the least |grad f + J' lambda| over lambda >= 0 on the nearly active g."""
        active = self.constraints(w) >= -1e-3
        if not active.any():
            return float(np.linalg.norm(self.gradient(w)))
        return float(nnls(self.jacobian(w)[active].T, -self.gradient(w))[1])

    def decision_gap(self, w: np.ndarray) -> float:
        decisions = self.scores(w) > 0
        return float(max(abs(c @ decisions) for c in self.contrasts))

    def solve(self, start: np.ndarray) -> np.ndarray:
        """Return SLSQP's answer from a start."""
        found = minimize(
            self.objective,
            start,
            jac=self.gradient,
            method="SLSQP",
            constraints={
                "type": "ineq",
                "fun": lambda w: -self.constraints(w),
                "jac": lambda w: -self.jacobian(w),
            },
            options={"ftol": 1e-12, "maxiter": 2000},
        )
        return found.x

    def reference(self, near: np.ndarray) -> tuple[np.ndarray, str]:
        """Return the best feasible of SLSQP's answers from 0 and from near a point, and which."""
        noise = np.random.default_rng(0).normal(scale=0.1, size=near.size)
        starts = {"zero": np.zeros(near.size), "near ours": near + noise}
        found = {name: self.solve(start) for name, start in starts.items()}
        feasible = {k: w for k, w in found.items() if self.violation(w) <= 1e-7} or found
        best = min(feasible, key=lambda name: self.objective(feasible[name]))
        return found[best], best
