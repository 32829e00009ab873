"""Random data sets: each is described by a few words and a seed; what a case has, and draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

Array = np.ndarray


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


Design = Callable[[np.random.Generator, int, int], Array]


def _gaussian(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.standard_normal((n, d))


def _collinear(rng: np.random.Generator, n: int, d: int) -> Array:
    rank = max(1, d // 2)
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))


def _constant(rng: np.random.Generator, n: int, d: int) -> Array:
    X = rng.standard_normal((n, d))
    X[:, rng.integers(d)] = rng.choice([0.0, 1.0, -3.5])
    return X


def _one_hot(rng: np.random.Generator, n: int, d: int) -> Array:
    return np.eye(d)[rng.choice(d, size=n, p=rng.dirichlet(np.ones(d)))]


def _binary(rng: np.random.Generator, n: int, d: int) -> Array:
    return (rng.random((n, d)) < rng.uniform(0.02, 0.6, d)).astype(float)


def _heavy(rng: np.random.Generator, n: int, d: int) -> Array:
    return np.asarray(rng.standard_t(2.0, (n, d)))


def _offset(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.standard_normal((n, d)) + rng.choice([-100.0, 50.0, 1000.0], d)


def _duplicated(rng: np.random.Generator, n: int, d: int) -> Array:
    few = rng.standard_normal((max(2, n // 10), d))
    return np.asarray(few[rng.integers(len(few), size=n)])


DESIGNS: dict[str, Design] = {
    "gaussian": _gaussian,
    "collinear": _collinear,
    "constant": _constant,
    "one_hot": _one_hot,
    "binary": _binary,
    "heavy": _heavy,
    "offset": _offset,
    "duplicated": _duplicated,
    "separable": _gaussian,
}


SCALES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "unit": lambda rng, d: np.ones(d),
    "small": lambda rng, d: np.full(d, 1e-6),
    "large": lambda rng, d: np.full(d, 1e6),
    "mixed": lambda rng, d: 10.0 ** rng.integers(-6, 7, d),
}


_NAMES: dict[str, Callable[[int], list[Any]]] = {
    "strings": lambda n: [f"g{k:03d}" for k in range(n)],
    "integers": lambda n: list(range(n)),
    "floats": lambda n: [0.5 * k for k in range(n)],
    "booleans": lambda n: [False, True][:n],
    "categories": lambda n: [f"level {k:03d}" for k in range(n)],
}


GROUP_KINDS = tuple(_NAMES)


_LABELS: dict[str, Callable[[int], Array]] = {
    "integers": lambda n: np.arange(n),
    "signs": lambda n: np.array([-1, 1]) if n == 2 else np.arange(n) - 1,
    "booleans": lambda n: np.array([False, True]) if n == 2 else np.arange(n),
    "strings": lambda n: np.array(["no", "yes"]) if n == 2 else np.array(list("abcdefgh"))[:n],
    "floats": lambda n: np.arange(n) + 1.0,
    "objects": lambda n: np.array([f"class {k}" for k in range(n)], dtype=object),
}


LABELS = tuple(_LABELS)


def _integers(rng: np.random.Generator, n: int) -> Array:
    return rng.integers(1, 4, n).astype(float)


def _some_zero(rng: np.random.Generator, n: int) -> Array:
    return rng.uniform(0.5, 2.0, n) * (rng.random(n) < 0.85)


WEIGHTS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "none": lambda rng, n: None,
    "ones": lambda rng, n: np.ones(n),
    "integers": _integers,
    "uniform": lambda rng, n: rng.uniform(0.1, 2.0, n),
    "zeros": _some_zero,
    "tiny": lambda rng, n: 1e-8 * rng.uniform(0.5, 2.0, n),
    "huge": lambda rng, n: 1e8 * rng.uniform(0.5, 2.0, n),
    "skewed": lambda rng, n: rng.exponential(1.0, n) ** 2 + 1e-3,
}


def _frame(X: Array, rng: np.random.Generator) -> Any:
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])


def _shuffled(X: Array, rng: np.random.Generator) -> Any:
    return _frame(X, rng).set_index(rng.permutation(len(X)))


CONTAINERS: dict[str, Callable[[Array, np.random.Generator], Any]] = {
    "numpy": lambda X, rng: X,
    "float32": lambda X, rng: X.astype(np.float32),
    "fortran": lambda X, rng: np.asfortranarray(X),
    "csr": lambda X, rng: sp.csr_array(X),
    "csc": lambda X, rng: sp.csc_matrix(X),
    "frame": _frame,
    "shuffled": _shuffled,
    "list": lambda X, rng: X.tolist(),
}


FRAMES = ("frame", "shuffled")


def make(spec: DataSpec) -> Data:
    """Return the data set of a description."""
    rng = np.random.default_rng(spec.seed)
    codes = _codes(spec, rng)
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
    rng = np.random.default_rng(spec.seed + 1)
    if spec.container == "float32":
        X = X.astype(np.float32).astype(float)
    y: Any = _LABELS[spec.labels](spec.n_classes)[positions]
    passed = CONTAINERS[spec.container](X, rng)
    groups: Any = _group_columns(spec, codes)
    columns: list[Any] | None = None
    if spec.sensitive_in_X:
        passed, columns, groups = _with_groups(spec, X, passed, groups)
    elif spec.container in FRAMES:
        groups = groups.set_index(passed.index)
    else:
        groups = groups.iloc[:, 0] if groups.shape[1] == 1 else groups
        plain = spec.group_kind in ("strings", "integers", "booleans") and not spec.missing
        groups = groups.to_numpy() if plain else groups
    if spec.container in FRAMES:
        y = pd.Series(y, index=passed.index, name="y")
        weight = None if weight is None else pd.Series(weight, index=passed.index)
    return Data(spec, passed, y, groups, weight, X, positions, codes, columns)


def _codes(spec: DataSpec, rng: np.random.Generator) -> Array:
    """Return the groups of all rows; every group has a row, the first one is the smallest."""
    columns = []
    for n in spec.n_groups:
        rest = (1.0 - spec.smallest) / max(1, n - 1)
        share = np.full(n, rest) if n > 1 else np.ones(1)
        share[0] = spec.smallest if n > 1 else 1.0
        column = rng.choice(n, size=spec.n_rows, p=share / share.sum())
        column[rng.permutation(spec.n_rows)[:n]] = np.arange(n)
        columns.append(column)
    return np.column_stack(columns)


def _classes(
    spec: DataSpec, X: Array, codes: Array, weight: Any, rng: np.random.Generator
) -> Array:
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
    lacking = np.bincount(positions[counted], minlength=spec.n_classes).min() < 2
    if lacking:
        positions[chosen] = np.arange(len(chosen)) % spec.n_classes
    return np.asarray(positions)


def _group_columns(spec: DataSpec, codes: Array) -> pd.DataFrame:
    """Return the sensitive columns as a frame."""
    made = {}
    for k, (column, n) in enumerate(zip(codes.T, spec.n_groups, strict=True)):
        names = np.array([*_NAMES[spec.group_kind](n), None], dtype=object)
        values = pd.Series(names[column], dtype=object)
        if spec.group_kind == "categories":
            values = values.astype("category")
        elif spec.group_kind in ("integers", "floats") or not (column < 0).any():
            values = values.infer_objects()
        made[f"z{k}"] = values
    return pd.DataFrame(made)


def _with_groups(
    spec: DataSpec, X: Array, passed: Any, groups: pd.DataFrame
) -> tuple[Any, list[Any], None]:
    """Return X with the sensitive columns at its end, and what they are called."""
    if spec.container in FRAMES:
        table = pd.concat([passed, groups.set_index(passed.index)], axis=1)
        return table, list(groups.columns), None
    d = X.shape[1]
    values = np.column_stack([X, groups.to_numpy(dtype=float)])
    rng = np.random.default_rng(spec.seed + 1)
    return CONTAINERS[spec.container](values, rng), [d + k for k in range(groups.shape[1])], None


Rng = np.random.Generator


KAPPAS = (0.0, 0.005, 0.02, 0.05, 0.05, 0.1, 0.3, 1.0)


def one_of(rng: Rng, choices: Sequence[Any]) -> Any:
    """Return one of the choices."""
    return choices[int(rng.integers(len(choices)))]


def maybe(rng: Rng, probability: float) -> bool:
    """Return whether something of a probability happens."""
    return bool(rng.random() < probability)


@dataclass(frozen=True, eq=False)
class Chosen:
    """An estimator's name, its settings other than the defaults, and the data."""

    estimator: str
    settings: dict[str, Any]
    data: DataSpec
