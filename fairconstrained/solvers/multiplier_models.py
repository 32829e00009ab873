"""Multiplier models: how the multipliers of many constraints are given by few parameters."""

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit

from fairconstrained.utils.arguments import Parametrized
from fairconstrained.utils.arrays import Array, Matrix
from fairconstrained.utils.parameter_constraints import Count, LayerSizes, Positive

_ALL = slice(None)

At = slice | Array


class MultiplierModel(Parametrized):
    r"""Multipliers :math:`\lambda_j = \nu(z_j; \theta) \ge 0` of constraints with features z_j.

    Instances hold hyperparameters only; theta is passed in and out. The features are those of all
    constraints, of which `at` selects some. Those of this class are the plain Lagrangian: one
    parameter per constraint, its multiplier.

    References
    ----------
    H. Narasimhan, A. Cotter, Y. Zhou, S. Wang, W. Guo, "Approximate heavily-constrained learning
    with Lagrange multiplier models", NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.solvers.multiplier_models import MultiplierModel
    >>> free = MultiplierModel()
    >>> free.ascend(np.array([0.0, 0.1]), np.eye(2), np.array([0.2, -0.3]), step=1.0)
    array([0.2, 0. ])
    """

    def start(self, features: Matrix, multipliers: Array, random_state: Any) -> Array:
        """Return the parameters whose multipliers are nearest to given ones."""
        return np.maximum(multipliers, 0.0)

    def multipliers(self, theta: Array, features: Matrix, at: At = _ALL) -> Array:
        """Return lambda of the selected constraints, shape (n_selected,)."""
        return np.asarray(theta[at])

    def ascend(self, theta: Array, features: Matrix, v: Array, step: float, at: At = _ALL) -> Array:
        r"""Return the parameters after a step that raises :math:`\langle v, \lambda \rangle`.

        To first order it rises by :math:`\mathrm{step} \cdot \|v\|^2`, which is what free
        multipliers gain: steps mean the same whatever the model, unless it has steps of its own.
        """
        out = theta.copy()
        out[at] = np.maximum(theta[at] + step * v, 0.0)
        return out


class Network(MultiplierModel):
    r"""A network with one hidden layer, :math:`\max\{a^\top \tanh(W z_j + b) + c, 0\}`.

    Constraints with similar features get similar multipliers, so that many of them need no more
    parameters than few. Parameters are the matrix and the shift of every layer, in order.

    Parameters
    ----------
    hidden : int, default=32
        The units of the hidden layer.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.solvers.multiplier_models import Network
    >>> model, features = Network(hidden=8), np.eye(3)
    >>> wanted = np.array([0.0, 0.5, 1.0])
    >>> theta = model.start(features, wanted, np.random.RandomState(0))
    >>> model.multipliers(theta, features).round(6) + 0.0
    array([0. , 0.5, 1. ])
    """

    hidden: Count = 32

    def units(self, x: Array) -> tuple[Array, Array]:
        """Return tanh and its derivative."""
        value = np.tanh(x)
        return value, 1.0 - value**2

    def start(self, features: Matrix, multipliers: Array, random_state: Any) -> Array:
        """Return a random hidden layer and the output that fits the multipliers best."""
        inner = random_state.standard_normal((features.shape[1], self.hidden))
        shift = random_state.standard_normal(self.hidden)
        units = np.column_stack([np.tanh(features @ inner + shift), np.ones(features.shape[0])])
        return np.concatenate([inner.ravel(), shift, np.linalg.lstsq(units, multipliers)[0]])

    def link(self, x: Array, n_constraints: int) -> tuple[Array, Array]:
        """Return max(x, 0) and its derivative in the direction of an ascent."""
        return np.maximum(x, 0.0), np.ones_like(x)

    def _shapes(self, features: Matrix) -> list[tuple[int, int]]:
        return list(pairwise([features.shape[1], *np.atleast_1d(self.hidden).tolist(), 1]))

    def _forward(self, theta: Array, features: Matrix) -> tuple[list[Any], Array]:
        """Return the matrix, inputs and slopes of every layer, and the output."""
        layers: list[Any] = []
        inputs, slopes, at = features, None, 0
        for n, h in self._shapes(features):
            matrix = theta[at : at + n * h].reshape(n, h)
            at += n * h + h
            layers.append((matrix, inputs, slopes))
            output: Array = inputs @ matrix + theta[at - h : at]
            inputs, slopes = self.units(output)
        return layers, output[:, 0]

    def multipliers(self, theta: Array, features: Matrix, at: At = _ALL) -> Array:
        """Return the multipliers that the network gives."""
        return self.link(self._forward(theta, features[at])[1], features.shape[0])[0]

    def gradient(self, theta: Array, features: Matrix, v: Array) -> Array:
        r"""Return the gradient of :math:`\sum_j v_j \lambda_j` in theta, by backpropagation.

        Where a multiplier is zero it is the one-sided derivative in the direction of v.
        """
        layers, output = self._forward(theta, features)
        back = (v * self.link(output, len(output))[1])[:, None]
        parts = list[Array]()
        for matrix, inputs, slopes in reversed(layers):
            parts = [(inputs.T @ back).ravel(), back.sum(axis=0), *parts]
            if slopes is not None:  # the gradient in the features is not needed
                back = (back @ matrix.T) * slopes
        return np.concatenate([*parts, np.zeros(len(theta) - sum(map(len, parts)))])

    def ascend(self, theta: Array, features: Matrix, v: Array, step: float, at: At = _ALL) -> Array:
        """Return the parameters after a step along the gradient.

        Multipliers that are zero and would fall do not count.
        """
        can_move = (self.multipliers(theta, features, at) > 0.0) | (v > 0.0)
        v = np.where(can_move, v, 0.0)
        gradient = self.gradient(theta, features[at], v)
        squared = float(gradient @ gradient)
        return theta + step * float(v @ v) / squared * gradient if squared else theta


class DeepNetwork(Network):
    r"""A network with several hidden layers, :math:`\mathrm{softplus}(\nu(z_j)) / m`, and Adagrad.

    The layers have rectified linear units. Parameters are followed by Adagrad's sums of squared
    gradients, one for each, so that the ascent needs no state beside them.

    Parameters
    ----------
    hidden : tuple of int, default=(100, 100, 100)
        The units of the hidden layers.
    rate : float, default=0.1
        Adagrad's learning rate, in place of the step size that `ascend` is given.

    References
    ----------
    Narasimhan et al. 2020, sections 5 and 6; J. Duchi, E. Hazan, Y. Singer, "Adaptive subgradient
    methods for online learning and stochastic optimization", JMLR 12 (2011).

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.solvers.multiplier_models import DeepNetwork
    >>> model, features = DeepNetwork((8, 8, 8)), np.eye(3)
    >>> theta = model.start(features, np.zeros(3), np.random.RandomState(0))
    >>> first = model.multipliers(theta, features)
    >>> values = np.array([1.0, 0.0, -1.0])
    >>> theta = model.ascend(theta, features, values, step=1.0)
    >>> bool(values @ (model.multipliers(theta, features) - first) > 0.0)
    True
    """

    hidden: LayerSizes = (100, 100, 100)  # type: ignore[assignment]
    rate: Positive = 0.1

    def units(self, x: Array) -> tuple[Array, Array]:
        """Return max(x, 0) and its derivative."""
        return np.maximum(x, 0.0), (x > 0.0).astype(float)

    def start(self, features: Matrix, multipliers: Array, random_state: Any) -> Array:
        """Return uniform parameters within one over the root of a layer's inputs.

        Given multipliers are not taken over: fitting a deep network to them is a problem of its
        own.
        """
        shapes = self._shapes(features)
        drawn = [random_state.uniform(-1.0, 1.0, n * h + h) / np.sqrt(n) for n, h in shapes]
        return np.concatenate([*drawn, *map(np.zeros_like, drawn)])

    def link(self, x: Array, n_constraints: int) -> tuple[Array, Array]:
        """Return softplus and its derivative, divided by the number of constraints."""
        return np.logaddexp(0.0, x) / n_constraints, expit(x) / n_constraints

    def ascend(self, theta: Array, features: Matrix, v: Array, step: float, at: At = _ALL) -> Array:
        """Return the parameters after a step of Adagrad."""
        parameters, sums = np.split(theta, 2)
        gradient = self.gradient(theta, features[at], v)[: len(parameters)]
        sums = sums + gradient**2
        move = self.rate * gradient / (np.sqrt(sums) + 1e-10)
        return np.concatenate([parameters + move, sums])
