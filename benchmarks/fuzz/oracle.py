"""One case from beginning to end: fit it, check it, fit it changed, compare."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from benchmarks.fuzz import checks, descent, further_checks
from benchmarks.fuzz.checks import Failure
from benchmarks.fuzz.fitting import Case, Outcome, OverBudget, limited, run
from benchmarks.fuzz.relations import RELATIONS, SEVERAL_SOLUTIONS, check_relation

# How many changed fits follow a fit, by the CPU seconds that it took: (seconds, changed fits).
_REPEATS = ((0.05, 5), (0.3, 3), (1.0, 2), (4.0, 1))
_SLOW_SHARE = 0.2  # of slower fits, the share that one changed fit follows
_OTHER_MODELS = (*checks.OF_MODELS, *checks.OF_CONSTRAINTS, checks.check_constant_loss)
_OF_KIND: dict[str, tuple[checks.Check, ...]] = {
    "NeymanPearsonClassifier": (
        *checks.OF_MODELS,
        checks.check_scores,
        further_checks.check_neyman_pearson,
    ),
    "fairness_path": (further_checks.check_path,),
    "FairLogisticClassifierCV": (further_checks.check_cross_validated,),
    "FairBoostingClassifier": _OTHER_MODELS,
    "FairNetworkClassifier": _OTHER_MODELS,
    "FairRanker": (*checks.OF_MODELS, further_checks.check_ranker),
    "FairThresholds": (further_checks.check_thresholds,),
    "several classes": (*checks.OF_MODELS, further_checks.check_several_classes),
}
_CLASSIFIERS: tuple[checks.Check, ...] = (
    *checks.OF_MODELS,
    *checks.OF_CONSTRAINTS,
    *checks.OF_LINEAR_MODELS,
    descent.check_certificate,
    descent.check_bound,
    descent.check_infeasible,
)
_SEVERAL = ("again", "units", "order", "classes", "container", "weights")
_ONLY: dict[str, tuple[str, ...]] = {
    "NeymanPearsonClassifier": _SEVERAL,
    "several classes": _SEVERAL,
    "FairLogisticClassifierCV": ("again",),
    "FairRanker": ("again", "units", "classes", "weights"),
    "FairThresholds": ("again", "classes"),
    "dask.FairLogisticClassifier": ("local", "weights"),
    "fairness_path": (),
}
"""The changes that are tried, for estimators that do not know all of them."""


@dataclass(frozen=True)
class Verdict:
    """What became of a case: how many fits it took, what was checked, and what is wrong.

    `checked` has the name of every check that was made, and whether it failed; `local` the pairs of
    fits that ended at different local solutions, both of them verified.
    """

    seed: int
    index: int
    estimator: str
    constraint: str
    solver: str
    fits: int
    seconds: float
    failures: tuple[Failure, ...]
    snippet: str
    refused: bool = False
    checked: tuple[tuple[str, bool], ...] = ()
    local: tuple[Failure, ...] = ()


@dataclass
class _Examination:
    """The checks of one case so far."""

    case: Case
    outcome: Outcome
    fits: int = 1
    found: list[Failure] = field(default_factory=list)
    local: list[Failure] = field(default_factory=list)
    checked: list[tuple[str, bool]] = field(default_factory=list)

    def add(self, name: str, failures: Iterator[Failure]) -> None:
        """Count a check and keep its failures."""
        every = list(failures)
        found = [one for one in every if one.kind != SEVERAL_SOLUTIONS]
        self.local += [one for one in every if one.kind == SEVERAL_SOLUTIONS]
        self.checked.append((name, bool(found)))
        self.found += found

    def fit(self) -> None:
        """Check the fit itself."""
        for check in _checks(self.case, self.outcome):
            name = check.__name__.removeprefix("check_").replace("_", " ")
            self.add(name, check(self.case, self.outcome))

    def changed(self, at_most: int | None) -> None:
        """Check changed fits: as many as their cost allows, or all that are drawn first."""
        for name in _relations(self.case, self.outcome, at_most):
            self.fits += 1
            rng = np.random.default_rng([self.case.seed, self.case.index, 2, *name.encode()])
            self.add(RELATIONS[name].kind, check_relation(name, self.case, self.outcome, rng))


def _checks(case: Case, outcome: Outcome) -> tuple[checks.Check, ...]:
    """Return the checks of one fit."""
    if outcome.error is not None:
        return checks.ALWAYS
    return (*checks.ALWAYS, *_OF_KIND.get(_kind(case), _CLASSIFIERS))


def _kind(case: Case) -> str:
    """Return which checks and changes a case has."""
    several = case.chosen.data.n_classes > 2
    fair = case.chosen.estimator == "FairLogisticClassifier"
    return "several classes" if several and fair else case.chosen.estimator


def failures_of(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """Yield everything that is wrong with one fit."""
    for check in _checks(case, outcome):
        yield from check(case, outcome)


def _relations(case: Case, outcome: Outcome, at_most: int | None) -> list[str]:
    """Return which changes are tried, in random order."""
    rng = case.rng
    slow = int(rng.random() < _SLOW_SHARE)
    if outcome.error is not None:
        return []
    if at_most is None:
        at_most = next((n for limit, n in _REPEATS if outcome.seconds < limit), slow)
    known = _ONLY.get(_kind(case), tuple(name for name in RELATIONS if name != "local"))
    names = [name for name in known if RELATIONS[name].suits(case, outcome)]
    return [str(name) for name in rng.permutation(names)[:at_most]]


def examine(case: Case, *, changed: int | None = None) -> Verdict:
    """Fit a case and return what is wrong with it.

    So many changed fits are made as `changed` says; None takes fewer the slower the fit was.
    """
    start = time.process_time()
    outcome = run(case)
    made = _Examination(case, outcome)
    incompatible = type(outcome.error).__name__ == "IncompatibleSolverError"
    refused = incompatible or isinstance(outcome.error, ImportError)
    if not refused:
        try:
            with limited(300.0):
                made.fit()
                made.changed(changed)
        except OverBudget:
            made.found.append(Failure("fuzzer", "the checks took more than 300 CPU seconds"))
        except Exception:  # a fault of the checks is a failure of the case, and is printed
            made.found.append(Failure("fuzzer", traceback.format_exc()))
    return Verdict(
        case.seed,
        case.index,
        case.chosen.estimator,
        case.constraint,
        case.solver,
        0 if refused else made.fits,
        time.process_time() - start,
        tuple(made.found),
        case.snippet(),
        refused,
        tuple(made.checked),
        tuple(made.local),
    )


MOST_CHANGED = max(n for _, n in _REPEATS)
