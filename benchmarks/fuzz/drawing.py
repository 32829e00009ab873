"""How random settings are drawn, and what a drawn case consists of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.fuzz.data import DataSpec

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
