"""Every object of the package, in the variants that the tests of properties go through.

A new surrogate, loss, penalty, domain or constraint gets one line here. `missing` says what has
been forgotten.
"""

import inspect
from itertools import product

import numpy as np

import fairconstrained as fc
from fairconstrained import constraints, domains, penalties
from fairconstrained.functions import base, losses, surrogates

N_VARIABLES = 4  # of the penalties and domains below

SURROGATES = [surrogates.Sigmoid(), surrogates.Sigmoid(scale=0.3)]
SURROGATES += [surrogates.Ramp(), surrogates.Ramp(scale=2.5)]
LOSSES = [losses.Logistic(), losses.TruncatedLogistic(), losses.TruncatedLogistic(alpha=0.5)]
LOSSES += [losses.Hinge(), losses.SquaredHinge(), losses.Quadratic()]
OBJECTIVES = [
    fc.objectives.PairwiseLoss(),
    fc.objectives.PairwiseLoss("squared_hinge"),
    fc.objectives.PairwiseLoss("hinge"),
    fc.objectives.PairwiseLoss("logistic"),
    fc.objectives.PairwiseLoss("truncated_logistic"),
    fc.objectives.PartialAUC(ranks=(0.0, 0.4)),
    fc.objectives.PartialAUC(ranks=(0.25, 0.7)),
    fc.objectives.PartialAUC(ranks=(0.1, 0.6), loss="squared_hinge"),
    fc.objectives.PartialAUC(ranks=(0.0, 1.0)),
    fc.objectives.QueryPairLoss(),
    fc.objectives.QueryPairLoss("hinge", average="queries"),
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
    fc.penalties.Zero(),
    fc.penalties.L1(0.3),
    fc.penalties.L2(0.7),
    fc.penalties.SCAD(0.5),
    fc.penalties.Proximity(np.array([0.5, -1.0, 2.0, 0.0]), 1.3),
    fc.penalties.Sum([fc.penalties.SCAD(0.5), fc.penalties.L2(0.2)]),
    fc.penalties.Sum([fc.penalties.L2(0.4), fc.penalties.Proximity(np.ones(4), 0.5)]),
    penalties.InUnits(fc.penalties.SCAD(0.5), np.array([0.5, 0.25, 1.0, 0.75])),
    penalties.InUnits(fc.penalties.L2(0.7), np.array([0.5, 0.25, 1.0, 0.75])),
    penalties.Leading(fc.penalties.L2(0.7), 2),
    penalties.Leading(fc.penalties.SCAD(0.5), 3),
    penalties.ConvexSum([fc.penalties.SCAD(0.5), fc.penalties.L2(1.0)]),
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

KAPPA = {"kappa": 0.1}
SETTINGS = {  # of every constraint, beside a function and what groups are compared with
    **{name: [KAPPA] for name in constraints.CONSTRAINTS},
    "equalized_odds": [KAPPA, {"ratio": 0.8}],
    "error_rate_parity": [KAPPA, {"ratio": 0.9}],
    "disparate_impact": [{}],
    "balanced_rate": [{"r": 0.8, "beta": 0.7}],
    "coverage": [{"rate": 0.3}, KAPPA],
    "churn": [{}, {"kappa": 0.2}],
    "minority_rate": [{"c": 0.2}, {}],
    "bounded_group_loss": [{"bound": 0.6}],
    "intersectional_loss": [KAPPA, {"average": True, **KAPPA}],
    "query_parity": [KAPPA, {"average": True, **KAPPA}],
    "roc_parity": [{"thresholds": [0.3, -1.0, 1.5], **KAPPA}],
    "partial_dp": [{"ranks": (0.1, 0.6), "n_ranks": 3, **KAPPA}],
    "weak_partial_dp": [{"ranks": (0.35, 0.65), **KAPPA}, KAPPA],
}
CHOICES = {
    "surrogate": ["sigmoid", surrogates.Ramp(2.0)],
    "loss": ["logistic", losses.TruncatedLogistic(), losses.Hinge()],
    "against": ["pairs", "overall"],
}
OF_PAIRS = {"surrogate": ["quadratic", *CHOICES["surrogate"]]}


def variants(name):
    """Return a constraint with its settings, and with every function and comparison."""
    kind, pairs = constraints.CONSTRAINTS[name], name.endswith("auc")
    choices = CHOICES | (OF_PAIRS if pairs else {})
    taken = {key: choices[key] for key in inspect.signature(kind).parameters if key in choices}
    chosen = [dict(zip(taken, each, strict=True)) for each in product(*taken.values())]
    return [kind(**settings, **each) for settings in SETTINGS[name] for each in chosen]


CONSTRAINTS = [constraint for name in SETTINGS for constraint in variants(name)]


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
