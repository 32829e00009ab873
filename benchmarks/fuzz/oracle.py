"""One case from beginning to end: fit it, check it, fit it changed, compare."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.fuzz import checks, classes, descent
from benchmarks.fuzz.checks import Failure
from benchmarks.fuzz.fitting import Case, Outcome, OverBudget, limited, run
from benchmarks.fuzz.relations import RELATIONS, check_relation

_RELATED = 0.5  # the share of cases that are fitted a second time, changed
_OF_KIND: dict[str, tuple[checks.Check, ...]] = {
    "NeymanPearsonClassifier": (*checks.OF_MODELS, classes.check_neyman_pearson),
    "fairness_path": (classes.check_path,),
    "FairLogisticClassifierCV": (classes.check_cross_validated,),
}
_CLASSIFIERS: tuple[checks.Check, ...] = (
    *checks.OF_MODELS,
    *checks.OF_CONSTRAINTS,
    descent.check_certificate,
    descent.check_infeasible,
)
_ANY_CLASSIFIER = ("again", "units", "order", "classes", "container", "weights")


@dataclass(frozen=True)
class Verdict:
    """What became of a case: how many fits it took, and what is wrong."""

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


def failures_of(case: Case, outcome: Outcome) -> Iterator[Failure]:
    """Yield everything that is wrong with one fit."""
    for check in checks.ALWAYS:
        yield from check(case, outcome)
    if outcome.error is None:
        for check in _OF_KIND.get(case.chosen.estimator, _CLASSIFIERS):
            yield from check(case, outcome)


def _relation(case: Case, outcome: Outcome) -> str | None:
    """Return which change is tried, None for none."""
    rng = case.rng
    if rng.random() > _RELATED or case.chosen.estimator in ("fairness_path",):
        return None
    if case.chosen.estimator == "FairLogisticClassifierCV":
        return "again"
    names = [name for name in RELATIONS if _suits(name, case, outcome)]
    return str(rng.choice(names)) if names else None


def _suits(name: str, case: Case, outcome: Outcome) -> bool:
    two_classes = case.chosen.estimator != "NeymanPearsonClassifier"
    if not two_classes and name not in _ANY_CLASSIFIER:
        return False
    return RELATIONS[name].suits(case, outcome)


def examine(case: Case) -> Verdict:
    """Fit a case and return what is wrong with it."""
    start = time.process_time()
    outcome, found, fits = run(case), [], 1
    refused = type(outcome.error).__name__ == "IncompatibleSolverError"
    if not refused:
        try:
            with limited(300.0):
                found = list(failures_of(case, outcome))
                relation = None if outcome.error is not None else _relation(case, outcome)
                if relation is not None:
                    fits += 1
                    found += check_relation(relation, case, outcome, case.rng)
        except OverBudget:
            found.append(Failure("fuzzer", "the checks took more than 300 CPU seconds"))
        except Exception:
            found.append(Failure("fuzzer", traceback.format_exc()))
    return Verdict(
        case.seed,
        case.index,
        case.chosen.estimator,
        case.constraint,
        case.solver,
        0 if refused else fits,
        time.process_time() - start,
        tuple(found),
        case.snippet(),
        refused,
    )
