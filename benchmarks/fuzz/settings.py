"""Random settings of the estimators, and data that suit them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.fuzz.data import DESIGNS, GROUP_KINDS, LABELS, SCALES, WEIGHTS, DataSpec
from fairconstrained import constraints as public
from fairconstrained.domains import Box, L1Ball, L2Ball
from fairconstrained.functions.surrogates import Ramp, Sigmoid
from fairconstrained.objectives import PairwiseLoss, PartialAUC
from fairconstrained.penalties.base import L2
from fairconstrained.penalties.separable import L1, SCAD
from fairconstrained.solvers import SOLVERS

Rng = np.random.Generator
KAPPAS = (0.0, 0.005, 0.02, 0.05, 0.05, 0.1, 0.3, 1.0)
_FAST = ("auto", "ipc", "augmented-lagrangian", "smoothing")
_SLOW_ROWS = 120  # the most rows for the other solvers, which take seconds where these do not
NAMED = tuple(name for name in SOLVERS if name != "level-search")


def one_of(rng: Rng, choices: Sequence[Any]) -> Any:
    """Return one of the choices."""
    return choices[int(rng.integers(len(choices)))]


def maybe(rng: Rng, probability: float) -> bool:
    """Return whether something of a probability happens."""
    return bool(rng.random() < probability)


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


@dataclass(frozen=True, eq=False)
class Chosen:
    """An estimator's name, its settings other than the defaults, and the data."""

    estimator: str
    settings: dict[str, Any]
    data: DataSpec


def _constraints(rng: Rng) -> Any:
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


def _data(rng: Rng) -> DataSpec:
    """Return a data set: about 300 rows in the median, a few of thousands."""
    n_rows = int(np.exp(rng.normal(np.log(250.0), 0.9)))
    n_rows = min(max(n_rows, 30), 5000)
    n_features = int(rng.integers(1, 13))
    if maybe(rng, 0.08):
        n_rows, n_features = int(rng.integers(30, 80)), int(rng.integers(80, 160))
    labels = one_of(rng, LABELS)
    n_groups = (int(one_of(rng, [2, 2, 2, 2, 3, 3, 4, 6])),)
    return DataSpec(
        seed=int(rng.integers(2**31)),
        n_rows=n_rows,
        n_features=n_features,
        design=one_of(rng, [*DESIGNS, *["gaussian"] * 4, "binary"]),
        scale=one_of(rng, ["unit"] * 5 + list(SCALES)),
        container=one_of(
            rng, ["numpy"] * 4 + ["float32", "fortran", "csr", "csc", "frame", "shuffled", "list"]
        ),
        labels=labels,
        positives=float(one_of(rng, [0.5, 0.5, 0.3, 0.7, 0.1, 0.05])),
        signal=float(one_of(rng, [1.0, 1.0, 2.0, 0.0, 5.0])),
        n_groups=n_groups,
        smallest=float(one_of(rng, [0.5, 0.5, 0.3, 0.1, 0.03])),
        group_kind=one_of(rng, [kind for kind in GROUP_KINDS if kind != "booleans"]),
        weights=one_of(rng, ["none"] * 6 + list(WEIGHTS)),
    )


def _solver(rng: Rng) -> dict[str, Any]:
    """Return the solver, and now and then few iterations or a beta."""
    name = "auto" if maybe(rng, 0.75) else one_of(rng, NAMED)
    settings: dict[str, Any] = {} if name == "auto" else {"solver": name}
    if maybe(rng, 0.1 if name in _FAST else 0.8):
        settings["max_iter"] = int(one_of(rng, [1, 3, 10, 50, 200]))
    return settings


def _alpha(rng: Rng) -> Any:
    return one_of(
        rng, [1e-4, 1e-4, 1e-4, 1e-3, 0.0, 1e-6, 1e-2, 1.0, L2(1e-3), L1(1e-3), SCAD(0.02)]
    )


def _domain(rng: Rng) -> Any:
    size = float(one_of(rng, [0.5, 2.0, 20.0]))
    return one_of(rng, [L1Ball, L2Ball, lambda b: Box(-b, b)])(size)


_LOSSES = {
    "FairLogisticClassifier": ["truncated_logistic", "hinge", "squared_hinge", "quadratic"],
    "FairHingeClassifier": ["squared_hinge"],
}
_PAIRS = [PairwiseLoss(), PairwiseLoss("hinge"), "auc", "partial_auc", PartialAUC((0.0, 0.5))]


def _two_class(rng: Rng, estimator: str) -> Chosen:
    """Return settings of a classifier of two classes under constraints."""
    settings: dict[str, Any] = {"constraint": _constraints(rng)}
    settings |= _solver(rng)
    optional: dict[str, tuple[float, Callable[[], Any]]] = {
        "kappa": (0.6, lambda: one_of(rng, KAPPAS)),
        "alpha": (0.5, lambda: _alpha(rng)),
        "surrogate": (0.2, lambda: one_of(rng, ["ramp", Sigmoid(0.3), Sigmoid(2.0), Ramp(2.0)])),
        "loss": (0.2, lambda: one_of(rng, _LOSSES[estimator])),
        "domain": (0.15, lambda: _domain(rng)),
        "fit_intercept": (0.1, lambda: False),
        "warm_start": (0.05, lambda: True),
        "random_state": (0.9, lambda: int(rng.integers(100))),
    }
    for name, (probability, draw) in optional.items():
        if maybe(rng, probability):
            settings[name] = draw()
    own_loss = settings["constraint"] != "bounded_group_loss"  # by name it takes the estimator's
    if estimator == "FairLogisticClassifier" and own_loss and maybe(rng, 0.05):
        settings["loss"] = one_of(rng, _PAIRS)
    if maybe(rng, 0.05):
        settings |= {"goal": "fairness", "max_loss_increase": one_of(rng, [0.001, 0.01, 0.1])}
    elif maybe(rng, 0.2):
        settings["enforce"] = "decision"
    return _with_sensitive(rng, Chosen(estimator, settings, _data(rng)))


def _with_sensitive(rng: Rng, chosen: Chosen) -> Chosen:
    """Return the same with settings that are about sensitive columns, and data to match."""
    settings, data = dict(chosen.settings), chosen.data
    if maybe(rng, 0.15):
        kind = one_of(rng, ["strings", "floats", "integers"])
        data = replace(data, n_groups=(2, int(rng.integers(2, 4))), group_kind=kind)
        settings["combine"] = one_of(rng, ["intersection", "marginal", "marginal"])
        if any(type(one).__name__ == "MinorityRate" for one in as_objects(settings["constraint"])):
            settings["combine"] = "intersection"  # with "marginal" the minority has to be named
    if maybe(rng, 0.1):
        frame = data.container in ("frame", "shuffled")
        kind = data.group_kind if frame else one_of(rng, ["integers", "floats"])
        data = replace(data, missing=0.1, group_kind=kind)
        settings["groups_missing"] = one_of(rng, ["own_group", "ignore_in_constraint"])
    if maybe(rng, 0.15):
        data = replace(data, sensitive_in_X=True)
        numeric = data.group_kind in ("integers", "floats") and not data.missing
        if data.container not in ("frame", "shuffled"):
            data = replace(data, group_kind="integers", missing=0.0, design="gaussian")
            settings.pop("groups_missing", None)
            numeric = True
        settings["use_sensitive"] = numeric and maybe(rng, 0.3)
        crossed = settings.get("combine") != "marginal" and not data.missing
        settings["group_interactions"] = crossed and maybe(rng, 0.4)
    return _suited(Chosen(chosen.estimator, settings, data))


def _suited(chosen: Chosen) -> Chosen:
    """Return the same with group columns that an intersectional constraint can read."""
    settings, data = chosen.settings, chosen.data
    found = as_objects(settings["constraint"])
    memberships = {getattr(one, "membership", "crossed") for one in found} - {"crossed"}
    if "columns" in memberships:
        data = replace(data, n_groups=(2,) * len(data.n_groups), group_kind="integers", missing=0.0)
    elif "thresholds" in memberships:
        data = replace(data, group_kind="floats", missing=0.0)
    if memberships:
        settings.pop("groups_missing", None)
    return Chosen(chosen.estimator, settings, data)


def _neyman_pearson(rng: Rng) -> Chosen:
    """Return settings of the Neyman-Pearson classifier."""
    n_classes = int(one_of(rng, [2, 2, 3, 4, 5]))
    data = replace(_data(rng), n_classes=n_classes)
    least = 20 * n_classes
    data = replace(data, n_rows=max(data.n_rows, least), n_features=min(data.n_features, 20))
    settings = _solver(rng)
    guessing = 0.5 * (n_classes - 1)
    optional: dict[str, tuple[float, Callable[[], Any]]] = {
        "kappa": (0.6, lambda: float(guessing * one_of(rng, [0.1, 0.3, 0.6, 0.9, 1.5]))),
        "surrogate": (
            0.4, lambda: one_of(rng, ["ramp", "logistic", "hinge", "truncated_logistic"])
        ),
        "radius": (0.2, lambda: float(one_of(rng, [0.3, 2.0, 20.0]))),
        "alpha": (0.4, lambda: _alpha(rng)),
        "fit_intercept": (0.15, lambda: False),
        "random_state": (0.9, lambda: int(rng.integers(100))),
    }  # fmt: skip
    for name, (probability, draw) in optional.items():
        if maybe(rng, probability):
            settings[name] = draw()
    return Chosen("NeymanPearsonClassifier", settings, data)


def _path(rng: Rng) -> Chosen:
    """Return settings of a path."""
    chosen = _two_class(rng, "FairLogisticClassifier")
    kept = {"loss", "alpha", "surrogate", "domain", "fit_intercept", "random_state"}
    settings = {name: value for name, value in chosen.settings.items() if name in kept}
    if settings.get("loss") in _PAIRS:
        del settings["loss"]
    settings["constraint"] = one_of(rng, list(DRAW)[:5])
    data = replace(chosen.data, missing=0.0, sensitive_in_X=False, n_groups=(2,))
    return Chosen("fairness_path", settings, data)


def _cross_validated(rng: Rng) -> Chosen:
    """Return settings of the cross-validated classifier."""
    chosen = _path(rng)
    settings = {k: v for k, v in chosen.settings.items() if k != "alpha"}
    settings |= {"n_kappas": 4, "cv": 3, "alphas": (1e-3,), "max_gap": 0.1}
    data = replace(chosen.data, n_rows=max(120, min(chosen.data.n_rows, 1000)), smallest=0.5)
    data = replace(data, positives=0.5, weights=one_of(rng, ["none", "uniform"]))
    return Chosen("FairLogisticClassifierCV", settings, data)


_SHARED = (  # settings of every classifier of two classes
    "constraint", "kappa", "surrogate", "random_state", "goal", "max_loss_increase", "enforce",
    "combine", "groups_missing", "use_sensitive",
)  # fmt: skip


def _shared(rng: Rng, n_rows: int) -> Chosen:
    """Return settings that every classifier of two classes has, and at most so many rows."""
    chosen = _two_class(rng, "FairLogisticClassifier")
    settings = {k: v for k, v in chosen.settings.items() if k in _SHARED}
    return replace(
        chosen, settings=settings, data=replace(chosen.data, n_rows=min(chosen.data.n_rows, n_rows))
    )


def _boosting(rng: Rng) -> Chosen:
    """Return settings of boosted trees."""
    chosen = _shared(rng, 2000)
    settings = chosen.settings | {"n_estimators": int(one_of(rng, [1, 5, 20, 50])), "n_jobs": 1}
    optional: dict[str, list[Any]] = {
        "learning_rate": [0.03, 0.3],
        "num_leaves": [2, 4, 31],
        "min_child_samples": [1, 20],
        "reg_lambda": [0.0, 1.0],
        "colsample_bytree": [0.5],
        "early_stopping": [True],
        "n_fitted_trees": [None, 1],
    }
    for name, values in optional.items():
        if maybe(rng, 0.3):
            settings[name] = one_of(rng, values)
    settings.setdefault("random_state", 0)
    return replace(chosen, estimator="FairBoostingClassifier", settings=settings)


def _network(rng: Rng) -> Chosen:
    """Return settings of a small network."""
    chosen = _shared(rng, 400)
    settings = chosen.settings | {
        "hidden_layer_sizes": one_of(rng, [(8,), (4, 4), ()]),
        "max_epochs": int(one_of(rng, [1, 5, 20])),
    }
    if maybe(rng, 0.3):
        settings["activation"] = one_of(rng, ["tanh", "relu"])
    settings.setdefault("random_state", 0)
    return replace(chosen, estimator="FairNetworkClassifier", settings=settings)


_ESTIMATORS: list[tuple[float, Callable[[Rng], Chosen]]] = [
    (0.66, lambda rng: _two_class(rng, "FairLogisticClassifier")),
    (0.16, lambda rng: _two_class(rng, "FairHingeClassifier")),
    (0.14, _neyman_pearson),
    (0.025, _path),
    (0.015, _cross_validated),
]
OTHER_MODELS: dict[str, Callable[[Rng], Chosen]] = {"lightgbm": _boosting, "torch": _network}
"""Estimators of other models, by the module that they need."""
_EVERY = 12  # a case of another model after so many


def draw(rng: Rng, index: int) -> Chosen:
    """Return an estimator, its settings and its data; some indices have a model of another kind."""
    turn, rest = divmod(index + 1, _EVERY)
    if rest == 0:
        names = list(OTHER_MODELS)
        return OTHER_MODELS[names[turn % len(names)]](rng)
    shares = [share for share, _ in _ESTIMATORS]
    chosen = _ESTIMATORS[int(rng.choice(len(shares), p=shares))][1](rng)
    if chosen.settings.get("solver", "auto") not in _FAST:
        rows = min(chosen.data.n_rows, _SLOW_ROWS)
        chosen = replace(chosen, data=replace(chosen.data, n_rows=rows))
    return chosen
