"""Modules of PyTorch: how they are made, seeded, checked and run. PyTorch is imported when used."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fairconstrained.utils.arguments import check_option, import_extra
from fairconstrained.utils.arrays import Array

if TYPE_CHECKING:
    from torch import Tensor, device, dtype
    from torch.nn import Module

MakeModule = Callable[[int], "Module"]

ACTIVATIONS = {"relu": "ReLU", "tanh": "Tanh", "elu": "ELU", "gelu": "GELU", "silu": "SiLU"}
DEVICES = {"auto": "a GPU if there is one", "cpu": "the host", "cuda": "a GPU"}


def torch_module() -> Any:
    """Return PyTorch; an ImportError says how to install it."""
    return import_extra("torch", "torch", "A network")


def device_of(name: str) -> device:
    """Return the device of a name; raise a ValueError for "cuda" where PyTorch finds no GPU."""
    check_option("device", name, DEVICES)
    torch = torch_module()
    gpu = name != "cpu" and torch.cuda.is_available()
    if name == "cuda" and not gpu:
        raise ValueError(
            "device='cuda': PyTorch finds no GPU; use device='auto', which uses a GPU if there is "
            "one, or 'cpu'."
        )
    return cast("device", torch.device("cuda" if gpu else "cpu"))


def multilayer_perceptron(
    n_features: int, hidden_layer_sizes: Sequence[int], activation: str = "relu"
) -> Module:
    r"""Return a network of fully connected layers with one output and He initialisation.

    Weights are drawn from :math:`N(0, 2 / n_{in})`, those of the last layer and of all layers
    before a tanh from :math:`N(0, 1 / n_{in})`; biases are zero.

    References
    ----------
    K. He, X. Zhang, S. Ren, J. Sun, "Delving deep into rectifiers", ICCV 2015.
    """
    torch = torch_module()
    kind = getattr(torch.nn, ACTIVATIONS[check_option("activation", activation, ACTIVATIONS)])
    layers: list[object] = []
    sizes = [n_features, *hidden_layer_sizes]
    for k, (inputs, units) in enumerate(zip(sizes, [*hidden_layer_sizes, 1], strict=True)):
        last = k == len(hidden_layer_sizes)
        gain = 1.0 if last or activation == "tanh" else 2.0
        linear = torch.nn.Linear(inputs, units)
        with torch.no_grad():
            linear.weight.normal_(0.0, float(np.sqrt(gain / max(inputs, 1))))
            linear.bias.zero_()
        layers += [linear] if last else [linear, kind()]
    return cast("Module", torch.nn.Sequential(*layers))


def _made(make: MakeModule, n_features: int) -> Any:
    """Return a copy of the module that a callable makes: a fit does not change the user's."""
    torch = torch_module()
    wanted = (
        "module must be a callable that takes the number of features and returns a new "
        "torch.nn.Module, such as lambda n: torch.nn.Linear(n, 1); "
    )
    if isinstance(make, torch.nn.Module):
        raise ValueError(f"{wanted}got the module {make!r}.")
    try:
        module = make(n_features)
    except TypeError as error:
        raise ValueError(f"{wanted}module({n_features}) raises: {error}") from error
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"{wanted}it returns {type(module).__name__}.")
    try:
        return deepcopy(module)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"{wanted}one that can be copied: copy.deepcopy raises {error}") from error


def _dtype(module: Module) -> dtype:
    """Return the precision of a module's weights, the default if it has none."""
    dtypes = (parameter.dtype for parameter in module.parameters() if parameter.is_floating_point())
    return next(dtypes, torch_module().get_default_dtype())


def new_module(make: MakeModule, n_features: int, seed: int) -> Module:
    """Return a new module in evaluation mode; the state of PyTorch's generator does not change.

    Raises
    ------
    TypeError
        If it is not a module.
    ValueError
        If it is a module itself, cannot be called with a number, its module cannot be copied, has
        no weights, or does not return one score per row.
    """
    torch = torch_module()
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        module = _made(make, n_features).cpu().eval()
        try:
            with torch.no_grad():  # a first pass also makes the weights of lazy layers
                output = module(torch.zeros(2, n_features, dtype=_dtype(module)))
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise ValueError(
                f"module must return a network for rows of {n_features} features; what it returns "
                f"raises on 2 rows of zeros: {error}"
            ) from error
    if not any(parameter.numel() for parameter in module.parameters()):
        raise ValueError("module must return a network that has weights; it has none.")
    shape = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
    if shape not in ((2,), (2, 1)):
        raise ValueError(
            "module must return a network with one output per row, of shape (n_rows,) or "
            f"(n_rows, 1); for 2 rows its output is {shape}."
        )
    return cast("Module", module)


def positions(module: Module) -> dict[str, slice]:
    """Return where the parameters of a module are in the flat weights, by name.

    Matrices come first, then vectors: biases and the like, which penalties leave out.
    """
    places, start = {}, 0
    for name, parameter in sorted(module.named_parameters(), key=lambda item: item[1].dim() < 2):
        places[name] = slice(start, start + parameter.numel())
        start += parameter.numel()
    return places


def weights_of(module: Module) -> Array:
    """Return the weights of a module as one vector of float64 on the host."""
    named = dict(module.named_parameters())
    drawn = [named[name].detach().cpu().double().numpy().ravel() for name in positions(module)]
    return np.concatenate([np.zeros(0), *drawn])


def named_weights(module: Module, flat: Tensor) -> dict[str, Tensor]:
    """Return the module's parameters by name, as views of a flat tensor."""
    named = dict(module.named_parameters())
    return {name: flat[at].view(named[name].shape) for name, at in positions(module).items()}


def load_weights(module: Module, flat: Tensor) -> None:
    """Write weights, one flat tensor, into a module."""
    with torch_module().no_grad():
        for name, values in named_weights(module, flat).items():
            module.get_parameter(name).copy_(values)


def standalone(module: Module, w: Array, shift: Array, scale: Array) -> Module:
    """Return a module for rows before centring and scaling, made of PyTorch's own layers."""
    torch = torch_module()
    standardize = torch.nn.BatchNorm1d(len(shift), eps=0.0, affine=False, dtype=torch.float64)
    standardize.running_mean.copy_(torch.as_tensor(shift))
    standardize.running_var.copy_(torch.as_tensor(scale**2))
    module = module.to(dtype=torch.float64)
    load_weights(module, torch.tensor(w))
    parts = {"standardize": standardize, "network": module, "scores": torch.nn.Flatten(0)}
    return cast("Module", torch.nn.Sequential(OrderedDict(parts)).eval())


def with_affine_output(module: Module, factor: float, constant: float) -> Module:
    """Return a sequence of layers whose outputs are multiplied and shifted, by PyTorch's layers."""
    torch = torch_module()
    affine = torch.nn.Linear(1, 1, dtype=torch.float64)
    with torch.no_grad():
        affine.weight.fill_(factor)
        affine.bias.fill_(constant)
    parts = {**dict(module.named_children()), "column": torch.nn.Unflatten(0, (-1, 1))}
    parts |= {"convention": affine, "shown": torch.nn.Flatten(0)}
    return cast("Module", torch.nn.Sequential(OrderedDict(parts)).eval())


@dataclass(frozen=True)
class LastLayer:
    """Where the weights of the last layer are, in whose inputs the scores are linear."""

    name: str  # the name of the layer in the module
    coefficients: slice  # the positions of its coefficients among all weights
    bias: slice  # the position of its bias; empty if it has none

    @property
    def positions(self) -> Array:
        """The positions of the coefficients, then of the bias, among all weights."""
        return np.r_[self.coefficients, self.bias]

    def inputs(self, module: Module, weights: object, X: Tensor) -> Tensor:
        """Return what the layer is applied to, for a module with these weights by name."""
        seen: list[Tensor] = []
        layer = module.get_submodule(self.name)
        hook = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        try:
            torch_module().func.functional_call(module, weights, (X,))
        finally:
            hook.remove()
        return seen[-1]


def last_layer(module: Module, n_features: int) -> LastLayer | None:
    """Return the layer in whose inputs the scores are linear, None if the module has none.

    It is the last fully connected layer with one output, if the scores of random rows are what it
    returns for them.
    """
    torch = torch_module()
    linear = [
        (name, layer)
        for name, layer in module.named_modules()
        if isinstance(layer, torch.nn.Linear) and layer.out_features == 1
    ]
    if not linear:
        return None
    name, layer = linear[-1]
    named, where = dict(module.named_parameters()), positions(module)

    def position(parameter: Any) -> slice:
        """Return where a parameter is, which may have the name of another layer that shares it."""
        return next(at for key, at in where.items() if named[key] is parameter)

    bias = slice(0, 0) if layer.bias is None else position(layer.bias)
    last = LastLayer(name, position(layer.weight), bias)
    kind = layer.weight.dtype
    X = torch.as_tensor(np.random.default_rng(0).normal(size=(5, n_features)), dtype=kind)
    with torch.no_grad():
        scores, weights = module(X), dict(module.named_parameters())
        inputs = last.inputs(module, weights, X)
        same = inputs.dim() == 2 and torch.equal(layer(inputs).reshape(-1), scores.reshape(-1))
    return last if same else None
