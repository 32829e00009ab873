"""Every object of the package, in the variants that the tests of properties go through.

A new surrogate, loss, penalty, domain or constraint gets one line here. `missing` says what has
been forgotten.
"""

import inspect
from functools import partial

import numpy as np

import fairconstrained.penalties as penalties
from fairconstrained.constraints import (
    BalancedRate,
    BoundedGroupLoss,
    CalibrationParity,
    Churn,
    Coverage,
    DemographicParity,
    DisparateImpact,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRateParity,
    GroupAUCParity,
    InterGroupAUCParity,
    IntersectionalLossParity,
    IntraGroupAUCParity,
    MinorityRate,
    PartialDemographicParity,
    PredictiveEquality,
    PredictiveParity,
    QueryParity,
    ROCParity,
    WeakPartialDemographicParity,
)
from fairconstrained.domains import (
    Blocks,
    Box,
    Ellipsoid,
    Enlarged,
    Intervals,
    L1Ball,
    L2Ball,
    WeightedL1Ball,
    WholeSpace,
)
from fairconstrained.domains import Leading as LeadingDomain
from fairconstrained.functions.base import (
    Indicator,
    Parabola,
    PlusParabola,
    Rounded,
    SubgradientError,
)
from fairconstrained.functions.losses import (
    Hinge,
    Logistic,
    Quadratic,
    SquaredHinge,
    TruncatedLogistic,
)
from fairconstrained.functions.surrogates import (
    PositivePart,
    Ramp,
    ShiftedSquare,
    Sigmoid,
    Stretched,
)
from fairconstrained.objectives import PairwiseLoss, PartialAUC, QueryPairLoss
from fairconstrained.penalties import L1, L2, SCAD, Proximity, Sum, Zero

N_VARIABLES = 4  # of the penalties and domains below

SURROGATES = [Sigmoid(), Sigmoid(scale=0.3), Ramp(), Ramp(scale=2.5)]
LOSSES = [
    Logistic(),
    TruncatedLogistic(),
    TruncatedLogistic(alpha=0.5),
    Hinge(),
    SquaredHinge(),
    Quadratic(),
]
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
    Indicator(),
    ShiftedSquare(),
    Parabola(1.5),
    Parabola(0.0),
    PositivePart(-0.5, 2.0),
    PlusParabola(Sigmoid(), 0.2),
    SubgradientError(Rounded(Ramp(), 0.4).corners),
    Stretched(Sigmoid(), 3.0),
    Stretched(Ramp(), 2.0),
    Stretched(ShiftedSquare(), 1.5),
    Stretched(Sigmoid(0.5)),
    Stretched(Ramp()),
    Rounded(Hinge(), 0.4),
    Rounded(Ramp(), 0.4),
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
    WholeSpace(),
    Box(-1.0, 2.0),
    Box(0.0, np.inf),
    L1Ball(1.5),
    L1Ball(),
    L2Ball(1.5),
    Intervals(np.array([-1.0, 0.0, -np.inf, 0.5]), np.array([0.5, 2.0, 0.0, np.inf])),
    Ellipsoid(np.array([0.5, 2.0, 1.0, 0.3])),
    Ellipsoid(np.full(4, 1.5)),
    WeightedL1Ball(1.5, np.array([0.5, 2.0, 1.0, 0.3])),
    Enlarged(L2Ball(0.5), 3.0),
    Blocks(L2Ball(1.0), 2),
    Blocks(Box(-0.5, 1.0), 4),
    LeadingDomain(L1Ball(1.0), 3),
    LeadingDomain(L2Ball(1.0), 2),
    LeadingDomain(Box(-0.5, 0.5), 2),
    LeadingDomain(Blocks(L2Ball(0.5), 1), 3),
]

CONSTRAINTS = [
    kind(0.1, surrogate=surrogate, against=against)
    for kind in (DemographicParity, EqualOpportunity, PredictiveEquality, EqualizedOdds)
    for surrogate in ("sigmoid", Ramp(2.0))
    for against in ("pairs", "overall")
]
CONSTRAINTS += [
    kind(0.1, surrogate=surrogate, against=against)
    for kind in (GroupAUCParity, InterGroupAUCParity, IntraGroupAUCParity)
    for surrogate in ("quadratic", "sigmoid", Ramp(2.0))
    for against in ("pairs", "overall")
]
CONSTRAINTS += [
    kind(surrogate=surrogate, against=against, **settings)
    for kind, settings in (
        (CalibrationParity, {"kappa": 0.1}),
        (PredictiveParity, {"kappa": 0.1}),
        (ErrorRateParity, {"kappa": 0.1}),
        (ErrorRateParity, {"ratio": 0.9}),
        (EqualizedOdds, {"ratio": 0.8}),
        (DisparateImpact, {}),
        (BalancedRate, {"r": 0.8, "beta": 0.7}),
    )
    for surrogate in ("sigmoid", Ramp(2.0))
    for against in ("pairs", "overall")
]
CONSTRAINTS += [
    Coverage(0.3),
    Coverage(kappa=0.1, surrogate=Ramp(2.0)),
    Churn(),
    Churn(kappa=0.2, surrogate=Ramp(2.0)),
    MinorityRate(0.2),
    MinorityRate(surrogate=Ramp(2.0)),
    BoundedGroupLoss(0.6),
    BoundedGroupLoss(0.6, loss=TruncatedLogistic()),
    BoundedGroupLoss(0.9, loss=Hinge()),
    IntersectionalLossParity(0.1),
    IntersectionalLossParity(0.1, loss="logistic"),
    IntersectionalLossParity(0.1, loss=TruncatedLogistic(), average=True),
    QueryParity(0.1),
    QueryParity(0.1, loss="logistic"),
    QueryParity(0.1, average=True),
]
CONSTRAINTS += [
    make(0.1, surrogate=surrogate)
    for make in (
        partial(ROCParity, thresholds=[0.3, -1.0, 1.5]),
        partial(ROCParity, thresholds=[0.0, 0.7], against="overall"),
        partial(PartialDemographicParity, ranks=(0.1, 0.6), n_ranks=3),
        partial(WeakPartialDemographicParity, ranks=(0.35, 0.65)),
        WeakPartialDemographicParity,
    )
    for surrogate in ("sigmoid", Ramp(2.0))
]


def label(thing):
    """Return what a test's id says of an object: its first line, without blanks."""
    return " ".join(repr(thing).split()).replace(" ", "")[:60]


def distinct(objects):
    """Return the objects without repetitions of the same class and parameters."""
    return list({repr(one): one for one in objects}.values())


def missing(base, objects):
    """Return the names of the package's concrete public subclasses of `base` not in `objects`."""
    waiting, found = [base], set()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        module = kind.__module__
        ours = module.startswith("fairconstrained.") and "._" not in module
        if ours and not inspect.isabstract(kind) and not kind.__name__.startswith("_"):
            found.add(kind.__name__)
    return found - {type(one).__name__ for one in objects} - {"Loss", "Surrogate", "RateParity"}
