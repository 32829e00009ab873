"""One case from beginning to end: fit it, check it, fit it changed, compare."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.fuzz import checks, descent, further_checks
from benchmarks.fuzz.checks import Failure
from benchmarks.fuzz.fitting import Case, Outcome, run
from benchmarks.fuzz.relations import RELATIONS, SEVERAL_SOLUTIONS, check_relation
from benchmarks.harness.processes import OverBudget, limited
from fairconstrained.exceptions import IncompatibleSolverError

# How many changed fits follow a fit, by the CPU seconds that it took: (seconds, changed fits).
_REPEATS = ((0.05, 5), (0.3, 3), (1.0, 2), (4.0, 1))
_SLOW_SHARE = 0.2  # of slower fits, the share that one changed fit follows
_OF_KIND: dict[str, tuple[checks.Check, ...]] = {
    "NeymanPearsonClassifier": (
        checks.check_finite, checks.check_scores, further_checks.check_neyman_pearson,
    ),
    "fairness_path": (further_checks.check_path,),
    "FairLogisticClassifierCV": (further_checks.check_cross_validated,),
    "FairBoostingClassifier": checks.OF_OTHER_MODELS,
    "FairNetworkClassifier": checks.OF_OTHER_MODELS,
    "FairRanker": (checks.check_finite, further_checks.check_ranker),
    "FairThresholds": (further_checks.check_thresholds,),
    "several classes": (checks.check_finite, further_checks.check_several_classes),
}  # fmt: skip
_CLASSIFIERS: tuple[checks.Check, ...] = (
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
    """What became of a case: the checks that were made, each with what it found.

    Pairs of fits that ended at different local solutions, both of them verified, are no failures.
    """

    case: Case
    seconds: float
    checked: tuple[tuple[str, tuple[Failure, ...]], ...] = ()
    fits: int = 0
    refused: bool = False

    @property
    def failures(self) -> list[Failure]:
        """All that is wrong."""
        return [one for _, some in self.checked for one in some if one.kind != SEVERAL_SOLUTIONS]

    @property
    def local(self) -> bool:
        """Whether fits ended at different local solutions."""
        return any(one.kind == SEVERAL_SOLUTIONS for _, some in self.checked for one in some)


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
    start, outcome = time.process_time(), run(case)
    if isinstance(outcome.error, IncompatibleSolverError | ImportError):
        return Verdict(case, time.process_time() - start, refused=True)
    checked: list[tuple[str, tuple[Failure, ...]]] = []
    names = _relations(case, outcome, changed)
    try:
        with limited(300.0):
            for check in _checks(case, outcome):
                name = check.__name__.removeprefix("check_").replace("_", " ")
                checked.append((name, tuple(check(case, outcome))))
            for name in names:
                rng = np.random.default_rng([case.seed, case.index, 2, *name.encode()])
                failures = check_relation(name, case, outcome, rng)
                checked.append((RELATIONS[name].kind, tuple(failures)))
    except OverBudget:
        text = "the checks took more than 300 CPU seconds"
        checked.append(("fuzzer", (Failure("fuzzer", text),)))
    except Exception:  # a fault of the checks is a failure of the case, and is printed
        checked.append(("fuzzer", (Failure("fuzzer", traceback.format_exc()),)))
    return Verdict(case, time.process_time() - start, tuple(checked), 1 + len(names))


MOST_CHANGED = max(n for _, n in _REPEATS)
