"""Random problems and settings of every estimator, checked by independent formulas.

Each case is fitted, checked, fitted again with a change that must not matter, and compared.
"""

import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import count as count_from
from itertools import takewhile

import numpy as np
import pandas as pd

from benchmarks.fuzz import checks, descent, fitting, relations
from benchmarks.fuzz.checks import Check, Failure, Failures
from benchmarks.fuzz.fitting import Case, Outcome
from benchmarks.fuzz.relations import RELATIONS, SEVERAL_SOLUTIONS
from benchmarks.fuzz.settings import as_objects
from benchmarks.harness.processes import OverBudget, isolated, limited
from fairconstrained.exceptions import IncompatibleSolverError

SLOW = 10.0  # cases that take more CPU seconds are named
# Seconds. CPU seconds are limited inside of the process; this is for hangs without any.
WALL = 900.0
_LATE = ("lightgbm", "torch", "dask.dataframe")  # once, not in the process of every case
# How many changed fits follow a fit, by the CPU seconds that it took: (seconds, changed fits).
_REPEATS = ((0.05, 5), (0.3, 3), (1.0, 2), (4.0, 1))
MOST_CHANGED = max(n for _, n in _REPEATS)
_SLOW_SHARE = 0.2  # of slower fits, the share that one changed fit follows
_ALWAYS = (checks.check_returns, checks.check_warnings)
_OF_OTHER_MODELS = (checks.check_violation, checks.check_figures, checks.check_constant)
_OF_CLASSIFIERS = (
    *_OF_OTHER_MODELS, checks.check_scores, checks.check_objective, checks.check_scale,
    descent.check_certificate, descent.check_bound, descent.check_infeasible,
    relations.check_probabilities,
)  # fmt: skip
_ALL = tuple(name for name in RELATIONS if name != "local")
_SEVERAL = ("again", "units", "order", "classes", "container", "weights")
_OF_KIND: dict[str, tuple[tuple[Check, ...], tuple[str, ...]]] = {
    "NeymanPearsonClassifier": ((checks.check_scores, checks.check_neyman_pearson), _SEVERAL),
    "several classes": ((checks.check_several_classes,), _SEVERAL),
    "fairness_path": ((checks.check_path,), ()),
    "FairLogisticClassifierCV": ((checks.check_cross_validated,), ("again",)),
    "find_alternatives": ((checks.check_alternatives,), ()),
    "FairBoostingClassifier": (_OF_OTHER_MODELS, _ALL),
    "FairNetworkClassifier": (_OF_OTHER_MODELS, _ALL),
    "FairRanker": ((checks.check_ranker,), ("again", "units", "classes", "weights")),
    "FairThresholds": ((checks.check_thresholds,), ("again", "classes")),
    "dask.FairLogisticClassifier": (_OF_CLASSIFIERS, ("local", "weights")),
}
"""The checks of a kind of cases, and the changes that are tried; all others are linear."""


@dataclass(frozen=True)
class Verdict:
    """What became of a case: the checks that were made, each with what it found.

    Pairs of fits that ended at different local solutions, both of them verified, are no failures.
    """

    case: Case
    seconds: float
    checked: Sequence[tuple[str, Sequence[Failure]]] = ()
    fits: int = 0
    refused: bool = False

    def of(self, *, local: bool) -> list[Failure]:
        """Return what was found of different local solutions, or all else."""
        every = [failure for _, some in self.checked for failure in some]
        return [failure for failure in every if (failure.kind == SEVERAL_SOLUTIONS) == local]

    @property
    def failures(self) -> list[Failure]:
        """All that is wrong."""
        return self.of(local=False)


def _checks(outcome: Outcome) -> tuple[Check, ...]:
    """Return the checks of one fit."""
    if outcome.error is not None:
        return _ALWAYS
    of_kind, _ = _OF_KIND.get(outcome.case.kind, (_OF_CLASSIFIERS, ()))
    return (*_ALWAYS, checks.check_finite, *of_kind)


def failures_of(outcome: Outcome) -> Failures:
    """Yield everything that is wrong with one fit."""
    for check in _checks(outcome):
        yield from check(outcome)


def _relations(outcome: Outcome, at_most: int | None) -> list[str]:
    """Return which changes are tried, in random order."""
    case = outcome.case
    rng = np.random.default_rng([case.seed, case.index, 1])
    slow = int(rng.random() < _SLOW_SHARE)
    if outcome.error is not None:
        return []
    if at_most is None:
        at_most = next((n for limit, n in _REPEATS if outcome.seconds < limit), slow)
    _, tried = _OF_KIND.get(case.kind, ((), _ALL))
    names = [name for name in tried if all(suits(outcome) for suits in RELATIONS[name].suits)]
    return [str(name) for name in rng.permutation(names)[:at_most]]


def examine(case: Case, *, changed: int | None = None) -> Verdict:
    """Fit a case and return what is wrong with it.

    So many changed fits are made as `changed` says; None takes fewer the slower the fit was.
    """
    start, outcome = time.process_time(), fitting.run(case)
    if isinstance(outcome.error, IncompatibleSolverError | ImportError):
        return Verdict(case, time.process_time() - start, refused=True)
    checked, names = list[tuple[str, Sequence[Failure]]](), _relations(outcome, changed)
    made = [(check.__name__.removeprefix("check_"), check(outcome)) for check in _checks(outcome)]
    for name in names:
        rng = np.random.default_rng([case.seed, case.index, 2, *name.encode()])
        made.append((RELATIONS[name].kind, relations.check_relation(name, outcome, rng)))
    try:
        with limited(300.0):
            for name, failures in made:
                checked.append((name.replace("_", " "), list(failures)))
    except (Exception, OverBudget):  # a fault of the checks is a failure of the case
        checked.append(("fuzzer", [Failure("fuzzer", traceback.format_exc())]))
    return Verdict(case, time.process_time() - start, checked, 1 + len(names))


def add_options(parser) -> None:
    """Add the options; --quick stops after ten seconds."""
    parser.add_argument("--seed", type=int, help="of the cases; a new one if it is left out")
    parser.add_argument("--seconds", type=float, default=120.0, help="no case begins after these")
    parser.add_argument("--first", type=int, default=0, help="the index of the first case")
    parser.add_argument("--count", type=int, help="the largest number of cases")
    parser.add_argument("--workers", type=int, default=1, help="how many processes")
    parser.add_argument("--progress", type=int, default=100, help="a line after so many cases")
    parser.add_argument("--reproduce", metavar="SEED:INDEX", help="run one case again")


def run(options) -> None:
    """Run the fuzzer; the exit status is 1 if a case failed."""
    failed = reproduce(options.reproduce) if options.reproduce else search(options)
    if failed:
        raise SystemExit(1)


def reproduce(which: str) -> bool:
    """Run one case again and print what is wrong with it; return whether something is."""
    case = Case.of(*map(int, which.split(":")))
    print(case, flush=True)
    verdict = examine(case, changed=MOST_CHANGED)
    print(describe(verdict) if verdict.failures else f"nothing is wrong ({verdict.fits} fits)")
    return bool(verdict.failures)


def verdicts(
    seed: int, seconds: float, *, workers=1, first=0, count=None, wall=WALL
) -> Iterator[Verdict]:
    """Yield the verdicts on cases in the order they end; none begins after so many seconds."""
    for name in _LATE:
        with suppress(ImportError):
            import_module(name)
    deadline = time.monotonic() + seconds
    indices = count_from(first) if count is None else range(first, first + count)
    begun = takewhile(lambda index: time.monotonic() < deadline, indices)
    cases = (Case.of(seed, index) for index in begun)
    for case, verdict, lost in isolated(examine, cases, workers, wall):
        failure = Failure(lost, "the process died, or did not answer in time")
        yield verdict or Verdict(case, 0.0, [(lost, [failure])], fits=1)


def search(options) -> bool:
    """Examine random cases, print failures and the table; return whether a case failed.

    The table is printed as well when the run is interrupted or terminated.
    """
    seed = time.time_ns() % 2**31 if options.seed is None else options.seed
    seconds = min(options.seconds, 10.0) if options.quick else options.seconds
    print(f"seed {seed}", flush=True)
    limits = {"first": options.first, "count": options.count}
    run_of, done = verdicts(seed, seconds, workers=options.workers, **limits), list[Verdict]()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for verdict in run_of:
            done.append(verdict)
            if verdict.failures:
                print(describe(verdict), flush=True)
            elif verdict.seconds > SLOW:
                print(f"slow {_index(verdict)} {verdict.seconds:.0f} CPU seconds")
            if len(done) % options.progress == 0:
                print(f"-- {len(done)} cases, {sum(each.fits for each in done)} fits", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(table(done), flush=True)
    return any(verdict.failures for verdict in done)


def _index(verdict: Verdict) -> str:
    return f"{verdict.case.seed}:{verdict.case.index}"


def describe(verdict: Verdict) -> str:
    """Return the failures of a case with what reproduces them."""
    lines = [f"FAILURE {_index(verdict)} ({verdict.seconds:.1f} CPU seconds)"]
    lines += [f"  {failure.kind}: {failure.text}" for failure in verdict.failures]
    return "\n".join([*lines, *(f"    {line}" for line in str(verdict.case).splitlines())])


def table(done: list[Verdict]) -> str:
    """Return counts of fits and failures: by class of failure, check and kind of case."""
    if not done:
        return "0 cases"
    rows = [
        (v.case.estimator, _constraint(v.case), v.case.solver, v.fits, bool(v.failures), v.seconds)
        for v in done
    ]
    columns = ["estimator", "constraint", "solver", "fits", "failed", "seconds"]
    frame = pd.DataFrame(rows, columns=columns)
    lines = [
        f"{len(done)} cases, {frame.fits.sum()} fits, {frame.failed.sum()} cases with failures"
        f", {sum(verdict.refused for verdict in done)} refused by the solver or without its library"
    ]
    kinds = Counter(kind for each in done for kind in {f.kind for f in each.failures})
    lines += [f"  {kind:<32}{n:>6}" for kind, n in kinds.most_common()]
    if local := [_index(verdict) for verdict in done if verdict.of(local=True)]:
        lines += [f"{len(local)} cases with several local solutions: {', '.join(local)}"]
    if made := [(name, bool(some)) for verdict in done for name, some in verdict.checked]:
        counts = pd.DataFrame(made).groupby(0)[1].agg(made="count", failed="sum")
        lines += ["", counts.rename_axis("check").to_string()]
    for name in ("estimator", "constraint", "solver"):
        sums = frame.groupby(name)[["fits", "failed", "seconds"]].sum()
        sums["seconds"] = (sums.seconds / sums.fits.clip(lower=1)).round(2)
        shown = sums.rename(columns={"seconds": "seconds per fit"})
        lines += ["", shown.sort_values("fits", ascending=False).to_string()]
    return "\n".join(lines)


def _constraint(case: Case) -> str:
    rules = as_objects(case.settings.get("constraint"))
    if case.estimator == "NeymanPearsonClassifier":
        return "(class losses)"
    return type(rules[0]).__name__ if len(rules) == 1 else "(two constraints)"
