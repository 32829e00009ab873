"""Networks: modules of PyTorch as models of flat weights. PyTorch is imported when used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from fairconstrained.models import modules
from fairconstrained.models.feature_scale import feature_scale
from fairconstrained.models.linear import Model, Pullback, Scores
from fairconstrained.utils.arrays import Array, Matrix

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


_SMALL = 1 << 22  # below this many multiplications in a layer, starting threads costs more


@dataclass(frozen=True, eq=False)
class Network:
    """A module whose weights are passed in, for rows whose features are centred and scaled."""

    make: modules.MakeModule  # returns a module with new weights, for a number of features
    # the module in evaluation mode; of its own weights only `loaded_scores` makes use
    module: Module
    shift: Array  # the features are centred by the one and divided by the other, (n_features,)
    scale: Array
    # the layer in whose inputs the scores are linear, if the module ends with one
    last: modules.LastLayer | None
    largest: int  # the number of weights of the largest layer

    def tensor(self, values: Array) -> Tensor:
        """Return a copy of values, with the device and the precision of the module."""
        torch, like = modules.torch_module(), next(self.module.parameters())
        return cast("Tensor", torch.tensor(values, dtype=like.dtype, device=like.device))

    def rows(self, X: Matrix) -> Tensor:
        """Return rows with centred and scaled features, on the device."""
        dense = X if isinstance(X, np.ndarray) else X.toarray()
        return self.tensor((dense - self.shift) / self.scale)

    def scores(self, flat: Tensor, X: Tensor) -> Tensor:
        """Return the scores, (n_rows,)."""
        weights = modules.named_weights(self.module, flat)
        scores = modules.torch_module().func.functional_call(self.module, weights, (X,))
        return cast("Tensor", scores.reshape(len(X)))

    def loaded_scores(self, X: Matrix) -> Scores:
        """Return the scores of rows, with the weights of the module, on the host.

        Threads may do so at the same time: unlike `scores`, it puts no weights into the module.
        """
        with modules.torch_module().no_grad(), self.limited_threads(X.shape[0]):
            scores = self.module(self.rows(X)).reshape(X.shape[0])
        return np.asarray(scores.double().cpu().numpy())

    @contextmanager
    def limited_threads(self, n_rows: int) -> Iterator[None]:
        """Let PyTorch use one thread on the host for few multiplications in the largest layer."""
        torch = modules.torch_module()
        before = torch.get_num_threads()
        torch.set_num_threads(1 if n_rows * self.largest < _SMALL else before)
        try:
            yield
        finally:
            torch.set_num_threads(before)


@dataclass(frozen=True, eq=False)
class TorchModel(Model):
    r"""Scores :math:`s_i = h_w((x_i - c) / q)` of a module of PyTorch with weights w.

    The weights are one flat vector of NumPy, matrices first and biases last, and the scores are on
    the host, so that solvers and terms need not know of PyTorch. Every forward pass has a graph of
    its own, which its pullback owns. Centring c and scale q are those of
    :func:`~fairconstrained.models.feature_scale.feature_scale`; they are part of the model, so that
    results do not depend on the units of the features. Make it with :meth:`standardized`.

    Notes
    -----
    Modules are in evaluation mode: dropout does nothing, and batch normalisation uses the running
    statistics with which the module was made, so that scores are a function of the weights. Where
    an activation has a kink, the gradient is PyTorch's choice of a subgradient.

    Examples
    --------
    >>> import numpy as np
    >>> from fairconstrained.models.network import TorchModel
    >>> X = np.random.default_rng(0).normal(size=(6, 3))
    >>> model = TorchModel.standardized(X, np.ones(6), hidden_layer_sizes=(4,))
    >>> model.n_parameters
    21
    >>> w = model.start(np.random.RandomState(0))
    >>> scores, pullback = model.forward(w)
    >>> scores.shape, pullback(np.ones(6)).shape
    ((6,), (21,))
    """

    fits_features: ClassVar[bool] = True

    network: Network  # the module, the centring and the scale
    rows: Tensor  # the centred and scaled rows, on the device, (n_rows, n_features)

    @classmethod
    def standardized(cls, X: Matrix, sample_weight: Array, **options: Any) -> TorchModel:
        """Return the model with its features centred and divided by the feature scale.

        Features that are constant have an infinite scale: the network ignores them. Its first
        weights are random, and would make the scores of other rows depend on the features' units.
        """
        known = feature_scale(X, sample_weight)
        scale = np.where(known.constant, np.inf, known.scale)
        return cls.with_scale(X, known.mean, scale, **options)

    @classmethod
    def with_scale(
        cls,
        X: Matrix,
        shift: Array,
        scale: Array,
        *,
        hidden_layer_sizes: Sequence[int] = (64, 64),
        activation: str = "relu",
        module: modules.MakeModule | None = None,
        device: str = "auto",
    ) -> TorchModel:
        """Return the model with given centring and scale.

        Raises
        ------
        ImportError
            If PyTorch is not installed.
        ValueError
            If the device is not available, or the module does not return one score per row.
        """

        def layers(n_features: int) -> Module:
            return modules.multilayer_perceptron(n_features, hidden_layer_sizes, activation)

        make = layers if module is None else module
        made = modules.new_module(make, len(shift), seed=0)
        last = modules.last_layer(made, len(shift))
        made = made.to(modules.device_of(device), modules.torch_module().float64).requires_grad_(
            False
        )
        largest = max(weights.numel() for weights in made.parameters())
        network = Network(make, made, shift, scale, last, largest)
        return cls(network, network.rows(X))

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.rows)

    @property
    def n_parameters(self) -> int:
        """The number of weights."""
        return sum(parameter.numel() for parameter in self.network.module.parameters())

    @property
    def n_penalized(self) -> int:
        """The number of weights that are not biases; they come first."""
        matrices = (each for each in self.network.module.parameters() if each.dim() >= 2)
        return sum(each.numel() for each in matrices)

    def start(self, random_state: np.random.RandomState) -> Array:
        """Return the weights of a new module, drawn with a seed from `random_state`.

        They do not depend on the device, and the state of PyTorch's generator is left as it was.
        """
        seed = int(random_state.randint(2**31 - 1))
        module = modules.new_module(self.network.make, len(self.network.shift), seed)
        return modules.weights_of(module)

    def forward(self, w: Array) -> tuple[Scores, Pullback]:
        """Return the scores and the map from weights on them to gradients, all on the host."""
        torch, network = modules.torch_module(), self.network
        with network.limited_threads(self.n_rows):
            flat = network.tensor(w).requires_grad_(True)
            scores = network.scores(flat, self.rows)

        def pullback(v: Array) -> Array:
            with network.limited_threads(self.n_rows):
                weighted = torch.dot(scores, network.tensor(v))
                (back,) = torch.autograd.grad(weighted, flat, retain_graph=True)
            return np.asarray(back.double().cpu().numpy())

        return scores.detach().double().cpu().numpy(), pullback

    def hidden(self, w: Array) -> Array:
        """Return what the last layer is applied to, on the host."""
        network = self.network
        assert network.last is not None, "the module does not end with a linear layer"
        with modules.torch_module().no_grad(), network.limited_threads(self.n_rows):
            weights = modules.named_weights(network.module, network.tensor(w))
            inputs = network.last.inputs(network.module, weights, self.rows)
        return np.asarray(inputs.double().cpu().numpy())

    def batch(self, rows: Array) -> TorchModel:
        """Return the model of these rows only."""
        index = modules.torch_module().as_tensor(rows, device=self.rows.device)
        return replace(self, rows=self.rows[index])

    def on(self, X: Matrix) -> TorchModel:
        """Return the model of other rows, with the same centring and scale."""
        return replace(self, rows=self.network.rows(X))

    def offset(self) -> Array | None:
        """Return one at the bias of the last layer, None if there is no such bias."""
        last = self.network.last
        if last is None or last.bias.start == last.bias.stop:
            return None
        direction = np.zeros(self.n_parameters)
        direction[last.bias] = 1.0
        return direction

    def module(self, w: Array) -> Module:
        """Return a module of its own with these weights, for rows before centring and scaling."""
        network = self.network
        made = modules.new_module(network.make, len(network.shift), seed=0)
        return modules.standalone(made, w, network.shift, network.scale)
