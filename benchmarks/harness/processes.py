"""Run tasks in processes of their own, end what takes too much CPU time, and time runs in turns."""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from statistics import median


class OverBudget(BaseException):
    """More CPU seconds than allowed; no handler of exceptions in the library catches it."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise OverBudget in the block after so many CPU seconds."""

    def over(number: int, frame) -> None:
        raise OverBudget(f"more than {seconds:g} CPU seconds")

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def _child(sender: Connection, function: Callable, task) -> None:
    sender.send(function(task))


def isolated(
    function: Callable, tasks: Iterable, workers: int = 1, wall: float = 900.0
) -> Iterator:
    """Yield each task with its result and "", or with None and "hang" or "crash".

    Processes are forks, so that each begins with what is imported here, and tasks are not pickled.
    One that has not answered after `wall` seconds is killed.
    """
    context, waiting = multiprocessing.get_context("fork"), iter(tasks)
    busy: dict = {}
    try:
        while True:
            while len(busy) < workers and (task := next(waiting, None)) is not None:
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=_child, args=(sender, function, task))
                process.start()
                sender.close()
                busy[receiver] = process, task, time.monotonic() + wall
            if not busy:
                return
            ready = wait(list(busy), timeout=min(1.0, wall))
            ended = [each for each, (*_, end) in busy.items() if time.monotonic() > end]
            for receiver in {*ready, *ended}:
                process, task, _ = busy.pop(receiver)
                result, lost = None, "" if receiver in ready else "hang"
                try:
                    result = None if lost else receiver.recv()
                except EOFError:
                    lost = "crash"
                _end(receiver, process, kill=bool(lost))
                yield task, result, lost
    finally:
        for receiver, (process, _, _) in busy.items():
            _end(receiver, process, kill=True)


def _end(receiver, process, *, kill: bool) -> None:
    receiver.close()
    if kill:
        process.kill()
    process.join()


def in_turns(runs: Mapping[str, Callable], repeats: int) -> dict[str, list[float]]:
    """Return the CPU seconds of the runs A B C A B C ...: what disturbs one disturbs all.

    They are in the order they were measured, so that entries of the same position belong together.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.process_time()
            run()
            seconds[name].append(time.process_time() - start)
    return seconds


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Return the median of the ratios of neighbouring runs."""
    return median(a / b for a, b in zip(ours, theirs, strict=True))
