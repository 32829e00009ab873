"""3S-Econ: one loop of subgradient steps on a smoothed exact penalty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from math import ceil, sqrt
from typing import Any, ClassVar, Literal, Self

import numpy as np

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.solvers.first_order import FirstOrderSolver
from fairconstrained.solvers.sampling import Sampler
from fairconstrained.utils.parameter_constraints import (
    COUNT,
    POSITIVE,
    ParameterConstraints,
    one_of,
)

Size = int | Literal["sqrt"] | None


@dataclass(eq=False, repr=False)
class ThreeSEcon(FirstOrderSolver):
    r"""3S-Econ: the SPIDER-type stochastic subgradient method for expectation constraints.

    A single loop of subgradient steps on the exact penalty function, smoothed over a width nu,

    .. math::
        w_{k+1} = P_W\Big(w_k - \alpha_k \big(\zeta_f + \beta \sum_i
        \mathrm{clip}\big(u_i / \nu, 0, 1\big) \zeta_{g_i}\big)\Big),

    where u estimates g(w_k): on a big batch every q steps and in between by
    :math:`u \leftarrow u + g(w_k, B_k) - g(w_{k-1}, B_k)` on small batches (SPIDER). The
    subgradients come from batches drawn independently of the B_k. All are stratified by cell, with
    at least two rows of every stratum; the paper draws rows independently. Sizes and periods follow
    N, the rows that the constraints are computed on. With ``batch_size=None`` all rows are used at
    every step: 3S-Econ-D, with steps :math:`\alpha`. :meth:`stochastic` makes 3S-Econ-S, with steps
    :math:`\alpha / \lceil \sqrt{(k + 1) / q} \rceil`.

    Parameters
    ----------
    beta : float, default=10.0
        The penalty parameter, > 0; it must be larger than all multipliers.
    nu : float, default=1e-5
        The width of the smoothing, > 0.
    q : int or "sqrt", default=1
        The number of steps from one big batch to the next; "sqrt" is the square root of N, rounded
        up, as in the paper.
    alpha : float, default=0.01
        The step size, > 0.
    batch_size : int, "sqrt" or None, default=None
        S2, the number of rows of a small batch; None is all rows.
    checkpoint_size : int, "sqrt" or None, default=None
        S1, the number of rows of a big batch; None is all rows.
    max_iter : int, default=200
        The number of steps.
    check_every : int, default=50
        Steps between two measurements.
    tol : float, default=1e-4
        The tolerance on violation and KKT residual.
    polish : bool, default=True
        Whether a run that does not reach `tol` is finished by second-order steps from its best
        point, see :func:`~fairconstrained.solvers.base.refine`. If False, estimators try no
        other solver either.

    References
    ----------
    W. Liu, Y. Xu, "A SPIDER-type stochastic subgradient method for expectation-constrained
    nonconvex nonsmooth optimization" (2025), equation (2), algorithm 1 and section 4.2.

    Examples
    --------
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.solvers.three_s_econ import ThreeSEcon
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05, solver=ThreeSEcon(beta=5.0))
    >>> clf.fit(X, y, sensitive_features=groups).result_.status
    <Status.CONVERGED: 'converged'>
    """

    _parameter_constraints: ClassVar[ParameterConstraints] = {
        "beta": [POSITIVE],
        "nu": [POSITIVE],
        "q": [COUNT, one_of("sqrt")],
        "alpha": [POSITIVE],
        "batch_size": [COUNT, one_of("sqrt"), None],
        "checkpoint_size": [COUNT, one_of("sqrt"), None],
    }

    beta: float = 10.0
    nu: float = 1e-5
    q: int | Literal["sqrt"] = 1
    _: KW_ONLY
    alpha: float = 0.01
    batch_size: Size = None
    checkpoint_size: Size = None

    @classmethod
    def stochastic(cls, **options: Any) -> Self:
        """Return 3S-Econ-S: batches of sqrt(N) rows, all rows every sqrt(N) steps.

        Parameters
        ----------
        **options
            Further hyperparameters, or others than these.
        """
        batches = {"q": "sqrt", "batch_size": "sqrt", "check_every": 1, "max_iter": 1000}
        return cls(**{**batches, **options})

    @classmethod
    def paper(cls, *, stochastic: bool = False, **options: Any) -> Self:
        """Return the method alone: nu = 1e-5 and steps of 0.01 are those of the paper.

        `iterate` yields the printed iterates; of the measured ones `minimize` returns the best.

        Parameters
        ----------
        stochastic : bool, default=False
            Whether 3S-Econ-S instead of 3S-Econ-D.
        **options
            Further hyperparameters, or others than these.
        """
        if stochastic:
            return cls.stochastic(**{"polish": False, **options})
        return cls(**{"max_iter": 600, "check_every": 25, "polish": False, **options})

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the point every `check_every` steps, rounded up to a multiple of q."""
        small = _draws(problem, self.batch_size, start)
        big = _draws(problem, self.checkpoint_size, start)
        sampled = self.batch_size is not None
        q = (_count(self.q, problem) or 1) if sampled else 1
        due = q * ceil(self.check_every / q)
        w = before = start.w
        u = np.zeros(problem.n_constraints)
        for k in range(self.max_iter + 1):
            last = k == self.max_iter or start.passes_used_up(problem)
            measured = last or (k > 0 and k % due == 0)
            if measured or k % q == 0:
                at = (problem if measured else big()).at(w)
                u = at.constraints
            else:
                at = small().at(w)
                u = u + at.constraints - at.problem.at(before).constraints
            if measured:
                yield Iterate(at, None, k)
            if sampled:  # subgradients are those of rows that are independent of u
                at = small().at(w)
            length = self.alpha / ceil(sqrt((k + 1) / q)) if sampled else self.alpha
            gradient = at.gradient(self.beta * np.clip(u / self.nu, 0.0, 1.0))
            before, w = w, problem.domain.project(w - length * gradient)


def _draws(problem: Problem, size: Size, start: Start) -> Callable[[], Problem]:
    """Return what gives the problem on a batch, or on all rows."""
    count = _count(size, problem)
    if count is None:
        return lambda: problem
    sampler = Sampler(problem, count, start.random_state)
    return lambda: sampler.draw().problem


def _count(size: Size, problem: Problem) -> int | None:
    return ceil(sqrt(_rows_of_constraints(problem))) if size == "sqrt" else size


def _rows_of_constraints(problem: Problem) -> int:
    """Return N, the rows that the constraints are computed on; all rows if there are none.

    The paper has S2 = q = 181 on a9a, the root of the 32,561 rows of the larger part of the data.
    In E4 here the constraints are on the other part, 16,281 rows: S2 = q = 128.
    """
    parts = problem.constraints
    used = [m for m in problem.models if any(part.model is m for part in parts)]
    return sum(model.n_rows for model in used) or problem.n_rows
