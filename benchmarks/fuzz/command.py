"""Random problems and settings of every estimator, checked by independent formulas."""

from __future__ import annotations

import signal
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from itertools import count as count_from
from itertools import takewhile
from typing import Any

import pandas as pd

from benchmarks.fuzz.checks import Failure
from benchmarks.fuzz.fitting import CPU_SECONDS, Case
from benchmarks.fuzz.oracle import MOST_CHANGED, Verdict, examine
from benchmarks.harness.processes import isolated

SLOW = 10.0  # cases that take more CPU seconds are named
WALL_SECONDS = 900.0  # CPU seconds are limited inside of the process; this is for hangs without any
_LATE = ("lightgbm", "torch", "dask.dataframe")  # once, not in the process of every case


def add_options(parser: ArgumentParser) -> None:
    """Add the options; --quick stops after ten seconds."""
    parser.add_argument("--seed", type=int, help="of the cases; a new one if it is left out")
    parser.add_argument("--seconds", type=float, default=120.0, help="no case begins after these")
    parser.add_argument("--first", type=int, default=0, help="the index of the first case")
    parser.add_argument("--count", type=int, help="the largest number of cases")
    parser.add_argument("--workers", type=int, default=1, help="how many processes")
    parser.add_argument("--cpu-seconds", type=float, default=CPU_SECONDS, help="limit of a fit")
    parser.add_argument("--progress", type=int, default=100, help="a line after so many cases")
    parser.add_argument("--reproduce", metavar="SEED:INDEX", help="run one case again")


def run(options: Namespace) -> None:
    """Run the fuzzer; the exit status is 1 if a case failed."""
    failed = reproduce(options.reproduce) if options.reproduce else search(options)
    if failed:
        raise SystemExit(1)


def reproduce(which: str) -> bool:
    """Run one case again and print what is wrong with it; return whether something is."""
    seed, index = (int(part) for part in which.split(":"))
    case = Case.of(seed, index)
    print(case.snippet(), flush=True)
    verdict = examine(case, changed=MOST_CHANGED)
    print(describe(verdict) if verdict.failures else f"nothing is wrong ({verdict.fits} fits)")
    return bool(verdict.failures)


def verdicts(
    seed: int,
    seconds: float,
    *,
    workers: int = 1,
    first: int = 0,
    count: int | None = None,
    cpu_seconds: float = CPU_SECONDS,
    wall: float = WALL_SECONDS,
) -> Iterator[Verdict]:
    """Yield the verdicts on cases in the order they end; none begins after so many seconds."""
    for name in _LATE:
        with suppress(ImportError):
            import_module(name)
    deadline = time.monotonic() + seconds
    indices = count_from(first) if count is None else range(first, first + count)
    begun = takewhile(lambda index: time.monotonic() < deadline, indices)
    cases = (Case.of(seed, index, cpu_seconds) for index in begun)
    for case, verdict, lost in isolated(examine, cases, workers, wall):
        failure = Failure(lost, "the process died, or did not answer in time")
        yield verdict or Verdict(case, 0.0, ((lost, (failure,)),), fits=1)


def search(options: Namespace) -> bool:
    """Examine random cases, print failures and the table; return whether a case failed.

    The table is printed as well when the run is interrupted or terminated.
    """
    seed = time.time_ns() % 2**31 if options.seed is None else options.seed
    seconds = min(options.seconds, 10.0) if options.quick else options.seconds
    print(f"seed {seed}", flush=True)
    names = ("workers", "first", "count", "cpu_seconds")
    run_of = verdicts(seed, seconds, **{name: getattr(options, name) for name in names})
    done: list[Verdict] = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for verdict in run_of:
            done.append(verdict)
            if verdict.failures:
                print(describe(verdict), flush=True)
            elif verdict.seconds > SLOW:
                print(f"slow {_index(verdict)} {verdict.seconds:.0f} CPU seconds")
            if len(done) % options.progress == 0:
                print(f"-- {len(done)} cases, {sum(one.fits for one in done)} fits", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(table(done), flush=True)
    return any(one.failures for one in done)


def _index(verdict: Verdict) -> str:
    return f"{verdict.case.seed}:{verdict.case.index}"


def describe(verdict: Verdict) -> str:
    """Return the failures of a case with what reproduces them."""
    lines = [f"FAILURE {_index(verdict)} ({verdict.seconds:.1f} CPU seconds)"]
    lines += [f"  {one.kind}: {one.text}" for one in verdict.failures]
    return "\n".join([*lines, *(f"    {line}" for line in verdict.case.snippet().splitlines())])


def table(done: list[Verdict]) -> str:
    """Return counts of fits and failures: by class of failure, check and kind of case."""
    frame = pd.DataFrame([_row(verdict) for verdict in done])
    if not done:
        return "0 cases"
    lines = [
        f"{len(done)} cases, {frame.fits.sum()} fits, {frame.failed.sum()} cases with failures"
        f", {sum(one.refused for one in done)} refused by the solver or without its library"
    ]
    kinds = Counter(kind for one in done for kind in {f.kind for f in one.failures})
    lines += [f"  {kind:<32}{n:>6}" for kind, n in kinds.most_common()]
    if local := [_index(one) for one in done if one.local]:
        lines += [f"{len(local)} cases with several local solutions: {', '.join(local)}"]
    made = pd.DataFrame([(name, bool(some)) for one in done for name, some in one.checked])
    if len(made):
        counts = made.groupby(0)[1].agg(made="count", failed="sum").rename_axis("check")
        lines += ["", counts.to_string()]
    for name in ("estimator", "constraint", "solver"):
        sums = frame.groupby(name)[["fits", "failed", "seconds"]].sum()
        sums["seconds"] = (sums.seconds / sums.fits.clip(lower=1)).round(2)
        shown = sums.rename(columns={"seconds": "seconds per fit"})
        lines += ["", shown.sort_values("fits", ascending=False).to_string()]
    return "\n".join(lines)


def _row(verdict: Verdict) -> dict[str, Any]:
    case = verdict.case
    return {
        "estimator": case.chosen.estimator,
        "constraint": "(two constraints)" if "+" in case.constraint else case.constraint,
        "solver": case.solver,
        "fits": verdict.fits,
        "failed": bool(verdict.failures),
        "seconds": verdict.seconds,
    }
