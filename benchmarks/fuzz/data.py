"""Random data sets: each is described by a few words and a seed; cases, and what draws them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

Array = np.ndarray
Rng = np.random.Generator
Settings = dict[str, Any]


@dataclass(frozen=True)
class DataSpec:
    """What a data set is: `make` builds it, the same one for equal descriptions."""

    seed: int
    n_rows: int = 300
    n_features: int = 5
    design: str = "gaussian"
    scale: str = "unit"
    container: str = "numpy"
    labels: str = "integers"
    n_classes: int = 2
    positives: float = 0.5
    signal: float = 1.0
    n_groups: tuple[int, ...] = (2,)
    smallest: float = 0.5
    group_kind: str = "strings"
    missing: float = 0.0
    weights: str = "none"
    sensitive_in_X: bool = False


@dataclass(frozen=True, eq=False)
class Data:
    """A data set as it is passed to `fit`, and the same as plain arrays.

    `dense` holds the features that the model may see, `positions` the classes (0, 1, ...), and
    `codes` the group of every row for each sensitive column (-1 where it is missing).
    """

    spec: DataSpec
    X: Any
    y: Any
    groups: Any
    weight: Any
    dense: Array
    positions: Array
    codes: Array
    sensitive_columns: list[Any] | None

    @property
    def weights(self) -> Array:
        """The weights as an array."""
        return np.ones(len(self.positions)) if self.weight is None else np.asarray(self.weight)


def _gaussian(rng: Rng, n: int, d: int) -> Array:
    return rng.standard_normal((n, d))


def _constant(rng: Rng, n: int, d: int) -> Array:
    X = rng.standard_normal((n, d))
    X[:, rng.integers(d)] = rng.choice([0.0, 1.0, -3.5])
    return X


DESIGNS: dict[str, Callable[[Rng, int, int], Array]] = {
    "gaussian": _gaussian,
    "collinear": lambda rng, n, d: (
        _gaussian(rng, n, max(1, d // 2)) @ _gaussian(rng, max(1, d // 2), d)
    ),
    "constant": _constant,
    "one_hot": lambda rng, n, d: np.eye(d)[rng.choice(d, size=n, p=rng.dirichlet(np.ones(d)))],
    "binary": lambda rng, n, d: (rng.random((n, d)) < rng.uniform(0.02, 0.6, d)).astype(float),
    "heavy": lambda rng, n, d: rng.standard_t(2.0, (n, d)),
    "offset": lambda rng, n, d: _gaussian(rng, n, d) + rng.choice([-100.0, 50.0, 1000.0], d),
    "duplicated": lambda rng, n, d: _gaussian(rng, max(2, n // 10), d)[
        rng.integers(max(2, n // 10), size=n)
    ],
    "separable": _gaussian,
}
SCALES: dict[str, Callable[[Rng, int], Array]] = {
    "unit": lambda rng, d: np.ones(d),
    "small": lambda rng, d: np.full(d, 1e-6),
    "large": lambda rng, d: np.full(d, 1e6),
    "mixed": lambda rng, d: 10.0 ** rng.integers(-6, 7, d),
}
GROUP_KINDS: dict[str, Callable[[int], list[Any]]] = {
    "strings": lambda n: [f"g{k:03d}" for k in range(n)],
    "integers": lambda n: list(range(n)),
    "floats": lambda n: [0.5 * k for k in range(n)],
    "categories": lambda n: [f"level {k:03d}" for k in range(n)],
}
LABELS: dict[str, Callable[[int], Array]] = {
    "integers": lambda n: np.arange(n),
    "signs": lambda n: np.array([-1, 1]) if n == 2 else np.arange(n) - 1,
    "booleans": lambda n: np.array([False, True]) if n == 2 else np.arange(n),
    "strings": lambda n: np.array(["no", "yes"]) if n == 2 else np.array(list("abcdefgh"))[:n],
    "floats": lambda n: np.arange(n) + 1.0,
    "objects": lambda n: np.array([f"class {k}" for k in range(n)], dtype=object),
}
WEIGHTS: dict[str, Callable[[Rng, int], Any]] = {
    "none": lambda rng, n: None,
    "ones": lambda rng, n: np.ones(n),
    "integers": lambda rng, n: rng.integers(1, 4, n).astype(float),
    "uniform": lambda rng, n: rng.uniform(0.1, 2.0, n),
    "zeros": lambda rng, n: rng.uniform(0.5, 2.0, n) * (rng.random(n) < 0.85),
    "tiny": lambda rng, n: 1e-8 * rng.uniform(0.5, 2.0, n),
    "huge": lambda rng, n: 1e8 * rng.uniform(0.5, 2.0, n),
    "skewed": lambda rng, n: rng.exponential(1.0, n) ** 2 + 1e-3,
}
CONTAINERS: dict[str, Callable[[Array], Any]] = {
    "numpy": np.asarray,
    "float32": np.float32,
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "frame": lambda X: pd.DataFrame(X).add_prefix("x"),
    "shuffled": lambda X: pd.DataFrame(X).add_prefix("x"),
    "list": np.ndarray.tolist,
}
FRAMES = ("frame", "shuffled")


def make(spec: DataSpec) -> Data:
    """Return the data set of a description."""
    rng = np.random.default_rng(spec.seed)
    codes = np.column_stack([_codes(spec, n, rng) for n in spec.n_groups])
    X = DESIGNS[spec.design](rng, spec.n_rows, spec.n_features)
    shift = rng.standard_normal(spec.n_features) * (spec.design not in ("one_hot", "binary"))
    X = X + 0.3 * spec.signal * np.outer(codes[:, 0] - codes[:, 0].mean(), shift)
    weight = WEIGHTS[spec.weights](rng, spec.n_rows)
    positions = _classes(spec, X, codes, weight, rng)
    X = X * SCALES[spec.scale](rng, spec.n_features)
    codes = np.where(rng.random(codes.shape) < spec.missing, -1, codes)
    return dress(spec, X, positions, codes, weight)


def dress(spec: DataSpec, X: Array, positions: Array, codes: Array, weight: Any) -> Data:
    """Return plain arrays in the form that a user would pass them in."""
    if spec.container == "float32":
        X = X.astype(np.float32).astype(float)
    y: Any = LABELS[spec.labels](spec.n_classes)[positions]
    contained, in_frame = CONTAINERS[spec.container], spec.container in FRAMES
    passed, groups, columns = contained(X), _group_columns(spec, codes), None
    if in_frame:
        if spec.container == "shuffled":
            passed = passed.set_index(np.random.default_rng(spec.seed + 1).permutation(len(X)))
        groups = groups.set_index(passed.index)
        y = pd.Series(y, index=passed.index, name="y")
        weight = None if weight is None else pd.Series(weight, index=passed.index)
    if spec.sensitive_in_X and in_frame:
        passed, columns, groups = pd.concat([passed, groups], axis=1), list(groups), None
    elif spec.sensitive_in_X:
        columns = [X.shape[1] + k for k in range(codes.shape[1])]
        passed, groups = contained(np.column_stack([X, groups.to_numpy(dtype=float)])), None
    elif not in_frame:
        groups = groups.iloc[:, 0] if groups.shape[1] == 1 else groups
        plain = spec.group_kind in ("strings", "integers") and not spec.missing
        groups = groups.to_numpy() if plain else groups
    return Data(spec, passed, y, groups, weight, X, positions, codes, columns)


def _codes(spec: DataSpec, n: int, rng: Rng) -> Array:
    """Return the groups of all rows; every group has a row, the first one is the smallest."""
    share = np.array([spec.smallest, *[(1.0 - spec.smallest) / (n - 1)] * (n - 1)])
    column = rng.choice(n, size=spec.n_rows, p=share / share.sum())
    column[rng.permutation(spec.n_rows)[:n]] = np.arange(n)
    return column


def _classes(spec: DataSpec, X: Array, codes: Array, weight: Any, rng: Rng) -> Array:
    """Return the class of every row; each class has two rows of positive weight."""
    centred = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    direction = rng.standard_normal((spec.n_features, spec.n_classes))
    latent = spec.signal * centred @ direction / np.sqrt(spec.n_features)
    latent = latent + 0.5 * spec.signal * np.outer(codes[:, 0], np.arange(spec.n_classes))
    if spec.design != "separable":
        latent = latent + rng.gumbel(size=latent.shape)
    if spec.n_classes == 2:
        margin = latent[:, 1] - latent[:, 0]
        positions = (margin > np.quantile(margin, 1.0 - spec.positives)).astype(int)
    else:
        positions = latent.argmax(axis=1)
    counted = np.flatnonzero(np.ones(spec.n_rows) if weight is None else weight)
    chosen = rng.permutation(counted)[: 2 * spec.n_classes]
    if np.bincount(positions[counted], minlength=spec.n_classes).min() < 2:
        positions[chosen] = np.arange(len(chosen)) % spec.n_classes
    return positions


def _group_columns(spec: DataSpec, codes: Array) -> pd.DataFrame:
    """Return the sensitive columns as a frame."""
    made = {}
    for k, (column, n) in enumerate(zip(codes.T, spec.n_groups, strict=True)):
        names = np.array([*GROUP_KINDS[spec.group_kind](n), None], dtype=object)
        values = pd.Series(names[column], dtype=object)
        if spec.group_kind == "categories":
            values = values.astype("category")
        elif spec.group_kind in ("integers", "floats") or not (column < 0).any():
            values = values.infer_objects()
        made[f"z{k}"] = values
    return pd.DataFrame(made)


def one_of(rng: Rng, choices: Sequence[Any]) -> Any:
    """Return one of the choices."""
    return choices[int(rng.integers(len(choices)))]


def maybe(rng: Rng, probability: float) -> bool:
    """Return whether something of a probability happens."""
    return bool(rng.random() < probability)


def every(rng: Rng, **options: Sequence[Any]) -> Settings:
    """Return a value of every option."""
    return {name: one_of(rng, choices) for name, choices in options.items()}


def some(rng: Rng, **options: tuple[float, Sequence[Any]]) -> Settings:
    """Return values of some options: each has its probability."""
    return {name: one_of(rng, choices) for name, (p, choices) in options.items() if maybe(rng, p)}
