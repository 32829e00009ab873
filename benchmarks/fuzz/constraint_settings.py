"""Random constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.fuzz.data import KAPPAS, Rng, maybe, one_of
from fairconstrained import constraints as public
from fairconstrained.functions.surrogates import Ramp, Sigmoid

Draw = Callable[[Rng], Any]


def _against(rng: Rng) -> str:
    return "overall" if maybe(rng, 0.2) else "pairs"


def _surrogate(rng: Rng) -> Any:
    """Return None (the estimator's), or a surrogate by name or as an object."""
    if maybe(rng, 0.75):
        return None
    return one_of(rng, ["sigmoid", "ramp", Sigmoid(0.3), Sigmoid(2.0), Ramp(2.0)])


def _own_kappa(rng: Rng) -> float | None:
    return None if maybe(rng, 0.7) else one_of(rng, KAPPAS)


def _options(rng: Rng, options: dict[str, Any]) -> dict[str, Any]:
    """Return options, each drawn by a function or one of a list."""
    return {
        name: drawn(rng) if callable(drawn) else one_of(rng, drawn)
        for name, drawn in options.items()
    }


def _of(kind: type, **options: Any) -> Draw:
    """Return what draws constraints of a kind."""
    return lambda rng: kind(**_options(rng, options))


_SHARED = {"surrogate": _surrogate, "against": _against}


def _rate(kind: type) -> Draw:
    ratios, differences = {"ratio": [0.0, 0.5, 0.8, 1.0]}, {"kappa": _own_kappa}

    def draw(rng: Rng) -> Any:
        return kind(**_options(rng, _SHARED | (ratios if maybe(rng, 0.15) else differences)))

    return draw


def _balanced(rng: Rng) -> Any:
    beta = one_of(rng, [1.0, 1.0, 0.5, 2.0])
    r = None if maybe(rng, 0.6) else float(rng.uniform(min(1.0, beta) + 0.02, 1.0 + beta))
    return public.BalancedRate(r, beta, **_options(rng, _SHARED))


_SURROGATES = ["quadratic", "quadratic", "sigmoid", "ramp", Sigmoid(0.5)]
_PAIRS = {"kappa": [None, 0.0, 0.02, 0.1, 0.5, 2.0], "surrogate": _SURROGATES, "against": _against}
_THRESHOLDS = [None, [0.0], [-1.0, 0.0, 1.0], np.linspace(-2.0, 2.0, 21).tolist()]
_RANKS = ["auto", (0.0, 0.25), (0.05, 0.3), (0.3, 0.7), (0.0, 1.0), (0.7, 1.0)]
_RANGES = {"kappa": _own_kappa, "surrogate": _surrogate, "ranks": _RANKS}

DRAW: dict[str, Draw] = {
    "demographic_parity": _rate(public.DemographicParity),
    "equal_opportunity": _rate(public.EqualOpportunity),
    "predictive_equality": _rate(public.PredictiveEquality),
    "equalized_odds": _rate(public.EqualizedOdds),
    "error_rate_parity": _rate(public.ErrorRateParity),
    "calibration_parity": _of(public.CalibrationParity, kappa=_own_kappa, **_SHARED),
    "predictive_parity": _of(public.PredictiveParity, kappa=_own_kappa, **_SHARED),
    "disparate_impact": _of(public.DisparateImpact, ratio=[0.8, 0.8, 0.5, 1.0, 0.0], **_SHARED),
    "balanced_rate": _balanced,
    "minority_rate": _of(
        public.MinorityRate, c=[None, None, 0.0, 0.1, 0.3, 0.5], surrogate=_surrogate
    ),
    "bounded_group_loss": _of(
        public.BoundedGroupLoss,
        bound=[0.3, 0.5, 0.6, 0.69, 0.8, 1.0],
        loss=["logistic", "hinge", "truncated_logistic", "quadratic"],
    ),
    "intersectional_loss": _of(
        public.IntersectionalLossParity,
        kappa=_own_kappa,
        loss=["hinge", "logistic", "truncated_logistic", "quadratic"],
        membership=["crossed", "crossed", "columns", "thresholds"],
        thresholds=[10, 3, [0.25]],
        min_share=[0.01, 0.1, 0.0],
        average=[False] * 4 + [True],
    ),
    "group_auc": _of(public.GroupAUCParity, **_PAIRS),
    "inter_group_auc": _of(public.InterGroupAUCParity, **_PAIRS),
    "intra_group_auc": _of(public.IntraGroupAUCParity, **_PAIRS),
    "roc_parity": _of(
        public.ROCParity,
        kappa=_own_kappa,
        thresholds=_THRESHOLDS,
        n_thresholds=[400, 20],
        **_SHARED,
    ),
    "partial_dp": _of(public.PartialDemographicParity, **_RANGES, n_ranks=[10, 10, 3, 1]),
    "weak_partial_dp": _of(public.WeakPartialDemographicParity, **_RANGES),
}


def constraints(rng: Rng) -> Any:
    """Return a name, an object or a list of two."""
    name = one_of(rng, list(DRAW))
    if maybe(rng, 0.25):
        return name
    if maybe(rng, 0.1):
        return [DRAW[name](rng), DRAW[one_of(rng, list(DRAW)[:8])](rng)]
    return DRAW[name](rng)


def as_objects(constraint: Any) -> list[Any]:
    """Return the constraints as a list of objects; names stand for the defaults."""
    if constraint is None:
        return []
    given = constraint if isinstance(constraint, list) else [constraint]
    return [public.CONSTRAINTS[one]() if isinstance(one, str) else one for one in given]
