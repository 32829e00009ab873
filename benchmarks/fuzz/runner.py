"""Worker processes that examine cases, so that one that hangs or dies does not end the run."""

from __future__ import annotations

import multiprocessing as mp
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from benchmarks.fuzz.checks import Failure
from benchmarks.fuzz.fitting import CPU_SECONDS, Case
from benchmarks.fuzz.oracle import Verdict, examine

WALL_SECONDS = 900.0  # CPU seconds are limited inside of the worker; this is for hangs without any


def _work(connection: Connection) -> None:
    """Examine the cases that come through a pipe until there are none."""
    while (task := connection.recv()) is not None:
        connection.send(examine(Case.of(*task)))


class _Worker:
    """A process and the case it is at."""

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

    def lost(self, kind: str, text: str) -> Verdict:
        """Return the verdict of a case that did not come back, and end the process."""
        self.process.kill()
        self.process.join()
        case = Case.of(*self.task)
        failure = (Failure(kind, text),)
        seconds = time.monotonic() - self.began
        made = case.chosen.estimator, case.constraint, case.solver
        return Verdict(case.seed, case.index, *made, 1, seconds, failure, case.snippet())

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()


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
                if worker.connection not in ready and not over:
                    continue
                busy.remove(worker)
                verdict, usable = _received(worker, worker.connection in ready)
                idle.append(worker if usable else _Worker())
                yield verdict
    finally:
        for worker in [*busy, *idle]:
            worker.close()


def _received(worker: _Worker, ready: bool) -> tuple[Verdict, bool]:
    """Return what a worker sent, and whether it can go on."""
    if not ready:
        return worker.lost("hang", "the worker did not answer in time"), False
    try:
        return worker.connection.recv(), True
    except EOFError:
        return worker.lost("crash", "the process died"), False
