"""Random problems and settings of every estimator, checked by independent formulas."""

from __future__ import annotations

import multiprocessing as mp
import signal
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from benchmarks.fuzz.checks import Failure
from benchmarks.fuzz.fitting import CPU_SECONDS, Case
from benchmarks.fuzz.oracle import MOST_CHANGED, Verdict, examine

SLOW = 10.0  # cases that take more CPU seconds are named
WALL_SECONDS = 900.0  # CPU seconds are limited inside of the worker; this is for hangs without any


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
                print(f"slow {verdict.seed}:{verdict.index} {verdict.seconds:.0f} CPU seconds")
            if len(done) % options.progress == 0:
                fits = sum(one.fits for one in done)
                print(f"-- {len(done)} cases, {fits} fits", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(table(done), flush=True)
    return any(one.failures for one in done)


def describe(verdict: Verdict) -> str:
    """Return the failures of a case with what reproduces them."""
    lines = [f"FAILURE {verdict.seed}:{verdict.index} ({verdict.seconds:.1f} CPU seconds)"]
    lines += [f"  {one.kind}: {one.text}" for one in verdict.failures]
    return "\n".join([*lines, *(f"    {line}" for line in verdict.snippet.splitlines())])


def table(done: list[Verdict]) -> str:
    """Return counts of fits and failures: by class of failure, check and kind of case."""
    fits, failed = sum(one.fits for one in done), sum(bool(one.failures) for one in done)
    refused = sum(one.refused for one in done)
    lines = [
        f"{len(done)} cases, {fits} fits, {failed} cases with failures"
        f", {refused} refused by the solver or without its library"
    ]
    kinds = Counter(kind for one in done for kind in {f.kind for f in one.failures})
    lines += [f"  {kind:<32}{count:>6}" for kind, count in kinds.most_common()]
    local = [f"{one.seed}:{one.index}" for one in done if one.local]
    if local:
        lines += [f"{len(local)} cases with several local solutions: {', '.join(local)}"]
    checks = [one for verdict in done for one in verdict.checked]
    wrong = Counter(name for name, found in checks if found)
    lines += ["", f"{'check':<32}{'made':>8}{'failed':>8}"]
    made = Counter(name for name, _ in checks)
    lines += [f"{name:<32}{n:>8}{wrong[name]:>8}" for name, n in made.most_common()]
    for name in ("estimator", "constraint", "solver"):
        lines += ["", *_by(name, done)]
    return "\n".join(lines)


def _by(name: str, done: list[Verdict]) -> Iterator[str]:
    """Yield a line for every value of an attribute; several constraints are one line."""
    groups: dict[str, list[Verdict]] = {}
    for one in done:
        value = getattr(one, name)
        groups.setdefault("(two constraints)" if "+" in value else value, []).append(one)
    yield f"{name:<32}{'fits':>8}{'failed':>8}{'seconds per fit':>18}"
    for value, some in sorted(groups.items(), key=lambda item: -sum(one.fits for one in item[1])):
        fits, failed = sum(one.fits for one in some), sum(bool(one.failures) for one in some)
        seconds = sum(one.seconds for one in some) / max(fits, 1)
        yield f"{value:<32}{fits:>8}{failed:>8}{seconds:>18.2f}"


def _work(connection: Connection) -> None:
    """Examine the cases that come through a pipe until there are none."""
    while (task := connection.recv()) is not None:
        connection.send(examine(Case.of(*task)))


class _Worker:
    """A process and the case it is at: one that hangs or dies does not end the run."""

    def __init__(self) -> None:
        context: Any = mp.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.task: tuple[Any, ...] = ()
        self.began = time.monotonic()

    def give(self, *task: float) -> None:
        """Start a case, given as for `Case.of`."""
        self.task, self.began = task, time.monotonic()
        self.connection.send(task)

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()

    def received(self, ready: bool) -> tuple[Verdict, bool]:
        """Return the verdict, and whether the process can go on."""
        try:
            if ready:
                return self.connection.recv(), True
            failure = Failure("hang", "the worker did not answer in time")
        except EOFError:
            failure = Failure("crash", "the process died")
        self.close()
        case, seconds = Case.of(*self.task), time.monotonic() - self.began
        made = case.chosen.estimator, case.constraint, case.solver
        lost = Verdict(case.seed, case.index, *made, 1, seconds, (failure,), case.snippet())
        return lost, False


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
    """Yield the verdicts of the cases first, first + 1, ... until the seconds are over."""
    deadline, index = time.monotonic() + seconds, first
    end = None if count is None else first + count
    busy: list[_Worker] = []
    idle = [_Worker() for _ in range(workers)]
    try:
        while True:
            while idle and time.monotonic() < deadline and (end is None or index < end):
                worker = idle.pop()
                worker.give(seed, index, cpu_seconds)
                busy.append(worker)
                index += 1
            if not busy:
                return
            ready = wait([worker.connection for worker in busy], timeout=1.0)
            for worker in list(busy):
                over = time.monotonic() - worker.began > wall
                if worker.connection in ready or over:
                    busy.remove(worker)
                    verdict, usable = worker.received(worker.connection in ready)
                    idle.append(worker if usable else _Worker())
                    yield verdict
    finally:
        for worker in [*busy, *idle]:
            worker.close()
