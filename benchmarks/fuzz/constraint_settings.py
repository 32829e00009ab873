"""Random constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.fuzz.drawing import KAPPAS, Rng, maybe, one_of
from fairconstrained import constraints as public
from fairconstrained.functions.surrogates import Ramp, Sigmoid


def _against(rng: Rng) -> str:
    return "overall" if maybe(rng, 0.2) else "pairs"


def _surrogate(rng: Rng) -> Any:
    """Return None (the estimator's), or a surrogate by name or as an object."""
    if maybe(rng, 0.75):
        return None
    return one_of(rng, ["sigmoid", "ramp", Sigmoid(0.3), Sigmoid(2.0), Ramp(2.0)])


def _own_kappa(rng: Rng) -> float | None:
    return None if maybe(rng, 0.7) else one_of(rng, KAPPAS)


def _rate(kind: type) -> Callable[[Rng], Any]:
    def draw(rng: Rng) -> Any:
        common = {"surrogate": _surrogate(rng), "against": _against(rng)}
        if maybe(rng, 0.15):
            return kind(ratio=one_of(rng, [0.0, 0.5, 0.8, 1.0]), **common)
        return kind(_own_kappa(rng), **common)

    return draw


def _disparate_impact(rng: Rng) -> Any:
    ratio = one_of(rng, [0.8, 0.8, 0.5, 1.0, 0.0])
    return public.DisparateImpact(ratio, surrogate=_surrogate(rng), against=_against(rng))


def _calibration(rng: Rng) -> Any:
    return public.CalibrationParity(
        _own_kappa(rng), surrogate=_surrogate(rng), against=_against(rng)
    )


def _balanced(rng: Rng) -> Any:
    beta = one_of(rng, [1.0, 1.0, 0.5, 2.0])
    r = None if maybe(rng, 0.6) else float(rng.uniform(min(1.0, beta) + 0.02, 1.0 + beta))
    return public.BalancedRate(r, beta, surrogate=_surrogate(rng), against=_against(rng))


def _minority(rng: Rng) -> Any:
    c = one_of(rng, [None, None, 0.0, 0.1, 0.3, 0.5])
    return public.MinorityRate(c, surrogate=_surrogate(rng))


def _group_loss(rng: Rng) -> Any:
    loss = one_of(rng, ["logistic", "hinge", "truncated_logistic", "quadratic"])
    return public.BoundedGroupLoss(one_of(rng, [0.3, 0.5, 0.6, 0.69, 0.8, 1.0]), loss=loss)


def _intersectional(rng: Rng) -> Any:
    return public.IntersectionalLossParity(
        _own_kappa(rng),
        loss=one_of(rng, ["hinge", "logistic", "truncated_logistic", "quadratic"]),
        membership=one_of(rng, ["crossed", "crossed", "columns", "thresholds"]),
        thresholds=one_of(rng, [10, 3, [0.25]]),
        min_share=one_of(rng, [0.01, 0.1, 0.0]),
        average=maybe(rng, 0.2),
    )


def _pairwise(kind: type) -> Callable[[Rng], Any]:
    def draw(rng: Rng) -> Any:
        surrogate = one_of(rng, ["quadratic", "quadratic", "sigmoid", "ramp", Sigmoid(0.5)])
        kappa = one_of(rng, [None, 0.0, 0.02, 0.1, 0.5, 2.0])
        return kind(kappa, surrogate=surrogate, against=_against(rng))

    return draw


def _roc(rng: Rng) -> Any:
    grid = [None, [0.0], [-1.0, 0.0, 1.0], np.linspace(-2.0, 2.0, 21).tolist()]
    options = {"surrogate": _surrogate(rng), "against": _against(rng)}
    return public.ROCParity(
        _own_kappa(rng),
        thresholds=one_of(rng, grid),
        n_thresholds=one_of(rng, [400, 20]),
        **options,
    )


def _ranks(rng: Rng) -> Any:
    return one_of(rng, ["auto", (0.0, 0.25), (0.05, 0.3), (0.3, 0.7), (0.0, 1.0), (0.7, 1.0)])


def _partial(rng: Rng) -> Any:
    return public.PartialDemographicParity(
        _own_kappa(rng),
        surrogate=_surrogate(rng),
        ranks=_ranks(rng),
        n_ranks=one_of(rng, [10, 10, 3, 1]),
    )


def _weak_partial(rng: Rng) -> Any:
    return public.WeakPartialDemographicParity(
        _own_kappa(rng), surrogate=_surrogate(rng), ranks=_ranks(rng)
    )


DRAW: dict[str, Callable[[Rng], Any]] = {
    "demographic_parity": _rate(public.DemographicParity),
    "equal_opportunity": _rate(public.EqualOpportunity),
    "predictive_equality": _rate(public.PredictiveEquality),
    "equalized_odds": _rate(public.EqualizedOdds),
    "error_rate_parity": _rate(public.ErrorRateParity),
    "calibration_parity": _calibration,
    "disparate_impact": _disparate_impact,
    "balanced_rate": _balanced,
    "minority_rate": _minority,
    "bounded_group_loss": _group_loss,
    "intersectional_loss": _intersectional,
    "group_auc": _pairwise(public.GroupAUCParity),
    "inter_group_auc": _pairwise(public.InterGroupAUCParity),
    "intra_group_auc": _pairwise(public.IntraGroupAUCParity),
    "roc_parity": _roc,
    "partial_dp": _partial,
    "weak_partial_dp": _weak_partial,
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
