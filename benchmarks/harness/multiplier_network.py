"""The multiplier model of Narasimhan et al. (2020): a deep network gives the multipliers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairconstrained.problem.problem import Problem
from fairconstrained.solvers import Solver
from fairconstrained.solvers.base import Iterate, Start
from fairconstrained.utils.typing import Array


class DeepMultiplierModel(Solver):
    r"""Descent in the weights; ascent, by Adagrad, in a network that gives the multipliers.

    The multiplier of constraint j is :math:`\lambda_j = \mathrm{softplus}(\nu(z_j)) / m` with its
    features z_j and a network :math:`\nu` of three hidden layers. The weights see the surrogates of
    a sample of the constraints, the multipliers the zero-one rates of the same.

    Parameters
    ----------
    features : ndarray of shape (n_constraints, n_features)
        z, standardised by this class.
    eta : float, default=0.1
        The step of the weights.
    rate : float, default=0.1
        Adagrad's learning rate.
    hidden : int, default=100
        The units of each hidden layer.
    n_sampled : int, default=100
        The constraints that a step draws.
    max_iter, check_every, tol
        As in the library's solvers.

    References
    ----------
    H. Narasimhan, A. Cotter, Y. Zhou, S. Wang, W. Guo, "Approximate heavily-constrained learning
    with Lagrange multiplier models", NeurIPS 2020.
    """

    def __init__(
        self,
        features: Array | None = None,
        *,
        eta: float = 0.1,
        rate: float = 0.1,
        hidden: int = 100,
        n_sampled: int = 100,
        max_iter: int = 1000,
        check_every: int = 20,
        tol: float = 1e-4,
    ):
        self.features = features
        self.eta = eta
        self.rate = rate
        self.hidden = hidden
        self.n_sampled = n_sampled
        self.max_iter = max_iter
        self.check_every = check_every
        self.tol = tol

    def iterate(self, problem: Problem, start: Start) -> Iterator[Iterate]:
        """Yield the point and its multipliers every `check_every` steps."""
        import torch

        z = np.zeros((problem.n_constraints, 1)) if self.features is None else self.features
        z = (z - z.mean(axis=0)) / (z.std(axis=0) + 1e-12)
        inputs = torch.tensor(z, dtype=torch.float32)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(start.random_state.randint(2**31 - 1)))
            sizes = [inputs.shape[1], *(self.hidden,) * 3]
            layers: list[torch.nn.Module] = []
            for k in range(3):
                layers += [torch.nn.Linear(sizes[k], sizes[k + 1]), torch.nn.ReLU()]
            network = torch.nn.Sequential(*layers, torch.nn.Linear(self.hidden, 1))
        ascent = torch.optim.Adagrad(network.parameters(), lr=self.rate, maximize=True)
        m, at = problem.n_constraints, start.at(problem)
        for k in range(1, self.max_iter + 1):
            n = min(self.n_sampled, m)
            drawn = start.random_state.choice(m, n, replace=False)
            found = torch.nn.functional.softplus(network(inputs[drawn])[:, 0])
            multipliers = np.zeros(m)
            multipliers[drawn] = found.detach().numpy() / n
            at = problem.at(at.w - self.eta * at.gradient(multipliers))
            rates = torch.tensor(at.decided.constraints[drawn], dtype=torch.float32)
            ascent.zero_grad()
            (found * rates).mean().backward()
            ascent.step()
            if self.measures(problem, start, k):
                yield Iterate(at, multipliers, k)
