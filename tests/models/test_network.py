"""Modules of PyTorch as models of flat weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from fairconstrained.models.modules import multilayer_perceptron  # noqa: E402
from fairconstrained.models.network import TorchModel  # noqa: E402

N_ROWS, N_FEATURES = 20, 5


class Residual(torch.nn.Module):
    """A network that does not end with a linear layer: its scores are a sum of two."""

    def __init__(self, n_features):
        super().__init__()
        self.inner = torch.nn.Linear(n_features, 3)
        self.outer = torch.nn.Linear(3, 1)

    def forward(self, X):
        return self.outer(torch.tanh(self.inner(X)))[:, 0] + X[:, 0]


def normalized(n_features):
    """Return a network with layer normalisation, dropout and without biases."""
    return torch.nn.Sequential(
        torch.nn.Linear(n_features, 6, bias=False),
        torch.nn.LayerNorm(6),
        torch.nn.SiLU(),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(6, 1, bias=False),
    )


OPTIONS = {
    "relu": {"hidden_layer_sizes": (4, 3)},
    "tanh": {"hidden_layer_sizes": (4,), "activation": "tanh"},
    "no hidden layer": {"hidden_layer_sizes": ()},
    "residual": {"module": Residual},
    "normalized": {"module": normalized},
}


@pytest.fixture
def X(rng):
    return rng.normal(size=(N_ROWS, N_FEATURES)) * [1.0, 10.0, 1e-3, 1.0, 5.0] + 3.0


@pytest.fixture(params=OPTIONS)
def options(request):
    return OPTIONS[request.param]


@pytest.fixture
def model(X, options):
    return TorchModel.standardized(X, np.ones(N_ROWS), **options)


@pytest.fixture
def w(model, rng):
    """Weights whose biases are not zero: at zero a ReLU after inactive units is at its kink."""
    return model.start(np.random.RandomState(0)) + 0.1 * rng.normal(size=model.n_parameters)


def test_pullback_gives_the_differences_of_scores(model, w, rng):
    v, step = rng.normal(size=N_ROWS), rng.normal(size=len(w))
    scores, pullback = model.forward(w)
    assert scores.shape == (N_ROWS,)
    assert scores.dtype == np.float64
    ahead, behind = model.forward(w + 1e-6 * step)[0], model.forward(w - 1e-6 * step)[0]
    assert pullback(v) @ step == pytest.approx(v @ (ahead - behind) / 2e-6, rel=1e-6, abs=1e-8)
    assert_array_equal(scores, model.forward(w)[0])


def test_start_has_the_variance_of_he_initialisation():
    module = multilayer_perceptron(400, (300,))
    assert float(module[0].weight.detach().var()) == pytest.approx(2.0 / 400.0, rel=0.05)
    assert float(module[2].weight.detach().var()) == pytest.approx(1.0 / 300.0, rel=0.3)
    assert float(module[0].bias.detach().abs().max()) == 0.0


def test_batches_and_other_rows(model, w, X):
    rows = np.array([3, 3, 0, 19])
    assert_allclose(model.batch(rows).forward(w)[0], model.forward(w)[0][rows], atol=1e-12)
    assert_allclose(model.on(X[5:9]).forward(w)[0], model.forward(w)[0][5:9], atol=1e-12)
    assert model.batch(rows).n_rows == 4
    assert model.on(X[5:9]).n_rows == 4


def test_the_offset_adds_one_to_every_score(model, w, options):
    offset = model.offset()
    if options.get("module") is normalized:
        assert offset is None
    elif options.get("module") is Residual:
        assert model.network.last is None
        assert offset is None
    else:
        assert_allclose(model.forward(w + 0.7 * offset)[0], model.forward(w)[0] + 0.7, atol=1e-12)


@pytest.mark.parametrize("options", sorted(OPTIONS.keys() - {"residual"}), indirect=True)
def test_scores_are_linear_in_the_last_layer(model, w):
    hidden, last = model.hidden(w), w[model.network.last.positions]
    n = hidden.shape[1]
    assert_allclose(hidden @ last[:n] + last[n:].sum(), model.forward(w)[0], atol=1e-12)


def test_the_module_alone_gives_the_scores(model, w, X):
    module = model.module(w)
    with torch.no_grad():
        scores = module(torch.tensor(X)).numpy()
    assert_allclose(scores, model.forward(w)[0], atol=1e-9)


WRONG_MODULES = [
    ({"module": lambda n: torch.nn.Linear(n, 2)}, ValueError, "one output per row"),
    ({"module": lambda n: 3}, TypeError, "returns int"),
    ({"module": torch.nn.Linear(3, 1)}, ValueError, r"module must be .* got the module Linear"),
    ({"module": torch.nn.Linear}, ValueError, r"module must be .* raises: .*out_features"),
    ({"module": lambda n: torch.nn.Linear(n + 1, 1)}, ValueError, "module must .* of . feat"),
    ({"module": lambda n: torch.nn.Flatten(0)}, ValueError, "module must .* has none"),
    ({"activation": "step"}, ValueError, "activation='step' is unknown"),
    ({"device": "tpu"}, ValueError, "device='tpu' is unknown"),
]


@pytest.mark.parametrize(("options", "error", "message"), WRONG_MODULES)
def test_modules_that_are_no_networks_raise(X, options, error, message):
    with pytest.raises(error, match=message):
        TorchModel.standardized(X, np.ones(N_ROWS), **options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="the error needs a machine without a GPU")
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_a_module_of_the_user_is_not_changed(kind, X, rng):
    module = multilayer_perceptron(N_FEATURES, (4,)).to(kind)
    module.get_parameter("0.bias").requires_grad_(False)
    before = {name: one.detach().clone() for name, one in module.named_parameters()}
    for _ in range(2):  # a second fit finds the same module
        model = TorchModel.standardized(X, np.ones(N_ROWS), module=lambda n: module)
        w = model.start(np.random.RandomState(0))
        model.module(w + rng.normal(size=len(w)))
    assert module.training
    for name, parameter in module.named_parameters():
        assert parameter.dtype is kind and parameter.requires_grad == (name != "0.bias")
        assert torch.equal(parameter, before[name])
    assert w @ w == pytest.approx(sum((one.double() ** 2).sum() for one in before.values()).item())


def test_modules_that_cannot_be_copied_raise(X):
    module = torch.nn.Linear(N_FEATURES, 1)
    module.twice = 2.0 * module.weight  # copy.deepcopy refuses results of computations
    with pytest.raises(ValueError, match="can be copied"):
        TorchModel.standardized(X, np.ones(N_ROWS), module=lambda n: module)


def test_a_device_that_is_not_there_is_refused(X):
    with pytest.raises(ValueError, match="finds no GPU"):
        TorchModel.standardized(X, np.ones(N_ROWS), device="cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU to compare")
def test_a_gpu_gives_the_scores_and_gradients_of_the_host(X, options, rng):
    host, gpu = (
        TorchModel.standardized(X, np.ones(N_ROWS), device=device, **options)
        for device in ("cpu", "cuda")
    )
    w, v = host.start(np.random.RandomState(0)), rng.normal(size=N_ROWS)
    assert_array_equal(w, gpu.start(np.random.RandomState(0)))
    assert_allclose(gpu.forward(w)[0], host.forward(w)[0], atol=1e-9)
    assert_allclose(gpu.forward(w)[1](v), host.forward(w)[1](v), atol=1e-9)
