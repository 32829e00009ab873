"""Every object of the package, in the variants that the tests of properties go through.

A new surrogate, loss, penalty, domain or constraint gets one line here. `missing` says what has
been forgotten.
"""

import inspect
from functools import partial

import numpy as np

from fairconstrained import constraints, domains, penalties
from fairconstrained.functions import base, losses, surrogates
from fairconstrained.objectives import PairwiseLoss, PartialAUC, QueryPairLoss
from fairconstrained.penalties import L1, L2, SCAD, Proximity, Sum, Zero

N_VARIABLES = 4  # of the penalties and domains below

SURROGATES = [surrogates.Sigmoid(), surrogates.Sigmoid(scale=0.3)]
SURROGATES += [surrogates.Ramp(), surrogates.Ramp(scale=2.5)]
LOSSES = [losses.Logistic(), losses.TruncatedLogistic(), losses.TruncatedLogistic(alpha=0.5)]
LOSSES += [losses.Hinge(), losses.SquaredHinge(), losses.Quadratic()]
OBJECTIVES = [
    PairwiseLoss(),
    PairwiseLoss("squared_hinge"),
    PairwiseLoss("hinge"),
    PairwiseLoss("logistic"),
    PairwiseLoss("truncated_logistic"),
    PartialAUC(ranks=(0.0, 0.4)),
    PartialAUC(ranks=(0.25, 0.7)),
    PartialAUC(ranks=(0.1, 0.6), loss="squared_hinge"),
    PartialAUC(ranks=(0.0, 1.0)),
    QueryPairLoss(),
    QueryPairLoss("hinge", average="queries"),
]
OTHER_FUNCTIONS = [
    base.Indicator(),
    surrogates.ShiftedSquare(),
    base.Parabola(1.5),
    base.Parabola(0.0),
    surrogates.PositivePart(-0.5, 2.0),
    base.PlusParabola(surrogates.Sigmoid(), 0.2),
    base.SubgradientError(base.Rounded(surrogates.Ramp(), 0.4).corners),
    surrogates.Stretched(surrogates.Sigmoid(), 3.0),
    surrogates.Stretched(surrogates.Ramp(), 2.0),
    surrogates.Stretched(surrogates.ShiftedSquare(), 1.5),
    surrogates.Stretched(surrogates.Sigmoid(0.5)),
    surrogates.Stretched(surrogates.Ramp()),
    base.Rounded(losses.Hinge(), 0.4),
    base.Rounded(surrogates.Ramp(), 0.4),
]
SCALAR_FUNCTIONS = SURROGATES + LOSSES + OTHER_FUNCTIONS

PENALTIES = [
    Zero(),
    L1(0.3),
    L2(0.7),
    SCAD(0.5),
    Proximity(np.array([0.5, -1.0, 2.0, 0.0]), 1.3),
    Sum([SCAD(0.5), L2(0.2)]),
    Sum([L2(0.4), Proximity(np.ones(4), 0.5)]),
    penalties.InUnits(SCAD(0.5), np.array([0.5, 0.25, 1.0, 0.75])),
    penalties.InUnits(L2(0.7), np.array([0.5, 0.25, 1.0, 0.75])),
    penalties.Leading(L2(0.7), 2),
    penalties.Leading(SCAD(0.5), 3),
    penalties.ConvexSum([SCAD(0.5), L2(1.0)]),
]

DOMAINS = [
    domains.WholeSpace(),
    domains.Box(-1.0, 2.0),
    domains.Box(0.0, np.inf),
    domains.L1Ball(1.5),
    domains.L1Ball(),
    domains.L2Ball(1.5),
    domains.Intervals(np.array([-1.0, 0.0, -np.inf, 0.5]), np.array([0.5, 2.0, 0.0, np.inf])),
    domains.Ellipsoid(np.array([0.5, 2.0, 1.0, 0.3])),
    domains.Ellipsoid(np.full(4, 1.5)),
    domains.WeightedL1Ball(1.5, np.array([0.5, 2.0, 1.0, 0.3])),
    domains.Enlarged(domains.L2Ball(0.5), 3.0),
    domains.Blocks(domains.L2Ball(1.0), 2),
    domains.Blocks(domains.Box(-0.5, 1.0), 4),
    domains.Leading(domains.L1Ball(1.0), 3),
    domains.Leading(domains.L2Ball(1.0), 2),
    domains.Leading(domains.Box(-0.5, 0.5), 2),
    domains.Leading(domains.Blocks(domains.L2Ball(0.5), 1), 3),
]

CONSTRAINTS = [
    kind(0.1, surrogate=surrogate, against=against)
    for kind in (
        constraints.DemographicParity,
        constraints.EqualOpportunity,
        constraints.PredictiveEquality,
        constraints.EqualizedOdds,
    )
    for surrogate in ("sigmoid", surrogates.Ramp(2.0))
    for against in ("pairs", "overall")
]
CONSTRAINTS += [
    constraints.CONSTRAINTS[name](0.1, surrogate=surrogate, against=against)
    for name in ("group_auc", "inter_group_auc", "intra_group_auc")
    for surrogate in ("quadratic", "sigmoid", surrogates.Ramp(2.0))
    for against in ("pairs", "overall")
]
CONSTRAINTS += [
    kind(surrogate=surrogate, against=against, **settings)
    for kind, settings in (
        (constraints.CalibrationParity, {"kappa": 0.1}),
        (constraints.PredictiveParity, {"kappa": 0.1}),
        (constraints.ErrorRateParity, {"kappa": 0.1}),
        (constraints.ErrorRateParity, {"ratio": 0.9}),
        (constraints.EqualizedOdds, {"ratio": 0.8}),
        (constraints.DisparateImpact, {}),
        (constraints.BalancedRate, {"r": 0.8, "beta": 0.7}),
    )
    for surrogate in ("sigmoid", surrogates.Ramp(2.0))
    for against in ("pairs", "overall")
]
CONSTRAINTS += [
    constraints.Coverage(0.3),
    constraints.Coverage(kappa=0.1, surrogate=surrogates.Ramp(2.0)),
    constraints.Churn(),
    constraints.Churn(kappa=0.2, surrogate=surrogates.Ramp(2.0)),
    constraints.MinorityRate(0.2),
    constraints.MinorityRate(surrogate=surrogates.Ramp(2.0)),
    constraints.BoundedGroupLoss(0.6),
    constraints.BoundedGroupLoss(0.6, loss=losses.TruncatedLogistic()),
    constraints.BoundedGroupLoss(0.9, loss=losses.Hinge()),
    constraints.IntersectionalLossParity(0.1),
    constraints.IntersectionalLossParity(0.1, loss="logistic"),
    constraints.IntersectionalLossParity(0.1, loss=losses.TruncatedLogistic(), average=True),
    constraints.QueryParity(0.1),
    constraints.QueryParity(0.1, loss="logistic"),
    constraints.QueryParity(0.1, average=True),
]
CONSTRAINTS += [
    make(0.1, surrogate=surrogate)
    for make in (
        partial(constraints.ROCParity, thresholds=[0.3, -1.0, 1.5]),
        partial(constraints.ROCParity, thresholds=[0.0, 0.7], against="overall"),
        partial(constraints.PartialDemographicParity, ranks=(0.1, 0.6), n_ranks=3),
        partial(constraints.WeakPartialDemographicParity, ranks=(0.35, 0.65)),
        constraints.WeakPartialDemographicParity,
    )
    for surrogate in ("sigmoid", surrogates.Ramp(2.0))
]


def label(thing):
    """Return what a test's id says of an object: its first line, without blanks."""
    return " ".join(repr(thing).split()).replace(" ", "")[:60]


def distinct(objects):
    """Return the objects without repetitions of the same class and parameters."""
    return list({repr(one): one for one in objects}.values())


def missing(parent, objects):
    """Return the names of the package's concrete public subclasses of a class not in `objects`."""
    waiting, found = [parent], set()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        module = kind.__module__
        ours = module.startswith("fairconstrained.") and "._" not in module
        if ours and not inspect.isabstract(kind) and not kind.__name__.startswith("_"):
            found.add(kind.__name__)
    return found - {type(one).__name__ for one in objects} - {"Loss", "Surrogate", "RateParity"}
