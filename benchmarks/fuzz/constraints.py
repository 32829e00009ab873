"""Random constraints."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.fuzz.data import Rng, Settings, every, maybe, one_of
from fairconstrained.constraints import CONSTRAINTS
from fairconstrained.functions.surrogates import Ramp, Sigmoid

KAPPAS = (0.0, 0.005, 0.02, 0.05, 0.05, 0.1, 0.3, 1.0)


def _kappa(rng: Rng) -> float | None:
    return None if maybe(rng, 0.7) else one_of(rng, KAPPAS)


def _surrogate(rng: Rng) -> Any:
    """Return None (the estimator's), or a surrogate by name or as an object."""
    if maybe(rng, 0.75):
        return None
    return one_of(rng, ["sigmoid", "ramp", Sigmoid(0.3), Sigmoid(2.0), Ramp(2.0)])


def _against(rng: Rng) -> str:
    return "overall" if maybe(rng, 0.2) else "pairs"


_SHARED: Settings = {"surrogate": _surrogate, "against": _against}


def _rate(rng: Rng) -> Settings:
    by_ratio = maybe(rng, 0.15)
    return _SHARED | ({"ratio": [0.0, 0.5, 0.8, 1.0]} if by_ratio else {"kappa": _kappa})


def _balanced(rng: Rng) -> Settings:
    beta = one_of(rng, [1.0, 1.0, 0.5, 2.0])
    r = None if maybe(rng, 0.6) else float(rng.uniform(min(1.0, beta) + 0.02, 1.0 + beta))
    return {"r": [r], "beta": [beta], **_SHARED}


_PAIRS = {
    "kappa": [None, 0.0, 0.02, 0.1, 0.5, 2.0],
    "surrogate": ["quadratic", "quadratic", "sigmoid", "ramp", Sigmoid(0.5)],
    "against": _against,
}
_RANKS = ["auto", (0.0, 0.25), (0.05, 0.3), (0.3, 0.7), (0.0, 1.0), (0.7, 1.0)]
_RANGES = {"kappa": _kappa, "surrogate": _surrogate, "ranks": _RANKS}
_DRAWN: dict[str, Settings | Callable[[Rng], Settings]] = {
    "demographic_parity": _rate,
    "equal_opportunity": _rate,
    "predictive_equality": _rate,
    "equalized_odds": _rate,
    "error_rate_parity": _rate,
    "calibration_parity": {"kappa": _kappa, **_SHARED},
    "predictive_parity": {"kappa": _kappa, **_SHARED},
    "disparate_impact": {"ratio": [0.8, 0.8, 0.5, 1.0, 0.0], **_SHARED},
    "balanced_rate": _balanced,
    "minority_rate": {"c": [None, None, 0.0, 0.1, 0.3, 0.5], "surrogate": _surrogate},
    "bounded_group_loss": {
        "bound": [0.3, 0.5, 0.6, 0.69, 0.8, 1.0],
        "loss": ["logistic", "hinge", "truncated_logistic", "quadratic"],
    },
    "intersectional_loss": {
        "kappa": _kappa,
        "loss": ["hinge", "logistic", "truncated_logistic", "quadratic"],
        "membership": ["crossed", "crossed", "columns", "thresholds"],
        "thresholds": [10, 3, [0.25]],
        "min_share": [0.01, 0.1, 0.0],
        "average": [False] * 4 + [True],
    },
    "group_auc": _PAIRS,
    "inter_group_auc": _PAIRS,
    "intra_group_auc": _PAIRS,
    "roc_parity": {
        "kappa": _kappa,
        "thresholds": [None, [0.0], [-1.0, 0.0, 1.0], np.linspace(-2.0, 2.0, 21).tolist()],
        "n_thresholds": [400, 20],
        **_SHARED,
    },
    "partial_dp": {**_RANGES, "n_ranks": [10, 10, 3, 1]},
    "weak_partial_dp": _RANGES,
}
NAMES = list(_DRAWN)


def _constraint(rng: Rng, name: str) -> Any:
    options = _DRAWN[name]
    return CONSTRAINTS[name](**every(rng, **(options(rng) if callable(options) else options)))


def named(rng: Rng, names: list[str], share: float = 0.3) -> Any:
    """Return the name of a constraint, or an object."""
    name = one_of(rng, names)
    return name if maybe(rng, share) else _constraint(rng, name)


def several(rng: Rng) -> Any:
    """Return a name, an object or a list of two."""
    name = one_of(rng, NAMES)
    if maybe(rng, 0.25):
        return name
    if maybe(rng, 0.1):
        return [_constraint(rng, name), _constraint(rng, one_of(rng, NAMES[:8]))]
    return _constraint(rng, name)


def as_objects(constraint: Any) -> list[Any]:
    """Return the constraints as a list of objects; names stand for the defaults."""
    if constraint is None:
        return []
    given = constraint if isinstance(constraint, list) else [constraint]
    return [CONSTRAINTS[each]() if isinstance(each, str) else each for each in given]
