"""Random problems and settings of every estimator, checked by independent formulas."""

from __future__ import annotations

import signal
import time
from argparse import ArgumentParser, Namespace

from benchmarks.fuzz.fitting import CPU_SECONDS, Case
from benchmarks.fuzz.oracle import MOST_CHANGED, Verdict, examine
from benchmarks.fuzz.report import Tally, describe
from benchmarks.fuzz.runner import verdicts

SLOW = 10.0  # cases that take more CPU seconds are named


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


def search(options: Namespace) -> bool:
    """Examine random cases, print failures and the table; return whether a case failed.

    The table is printed as well when the run is interrupted or terminated.
    """
    seed = time.time_ns() % 2**31 if options.seed is None else options.seed
    seconds = min(options.seconds, 10.0) if options.quick else options.seconds
    print(f"seed {seed}", flush=True)
    tally = Tally()
    found = verdicts(
        seed,
        seconds,
        workers=options.workers,
        first=options.first,
        count=options.count,
        cpu_seconds=options.cpu_seconds,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for verdict in found:
            tally.add(verdict)
            _report(tally, verdict, options.progress)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(tally.table(), flush=True)
    return bool(tally.failed)


def _report(tally: Tally, verdict: Verdict, progress: int) -> None:
    """Print a case that failed or took long, and now and then how far the run is."""
    if verdict.failures:
        print(describe(verdict), flush=True)
    elif verdict.seconds > SLOW:
        case = f"{verdict.seed}:{verdict.index}"
        print(f"slow {case} {verdict.seconds:.0f} CPU seconds", flush=True)
    if len(tally.verdicts) % progress == 0:
        print(f"-- {len(tally.verdicts)} cases, {tally.fits} fits", flush=True)
