"""Run tasks in processes of their own, and end what takes too much CPU time."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any


class OverBudget(BaseException):
    """More CPU seconds than allowed; no handler of exceptions in the library catches it."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise OverBudget in the block after so many CPU seconds."""

    def over(number: int, frame: Any) -> None:
        raise OverBudget(f"more than {seconds:g} CPU seconds")

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def _child(sender: Connection, function: Callable[[Any], Any], task: Any) -> None:
    sender.send(function(task))


def isolated(
    function: Callable[[Any], Any], tasks: Iterable[Any], workers: int = 1, wall: float = 900.0
) -> Iterator[tuple[Any, Any, str]]:
    """Yield each task with its result and "", or with None and "hang" or "crash".

    Processes are forks, so that each begins with what is imported here, and tasks are not pickled.
    One that has not answered after `wall` seconds is killed.
    """
    context, waiting = multiprocessing.get_context("fork"), iter(tasks)
    busy: dict[Any, tuple[Any, Any, float]] = {}
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
            ready = wait(list(busy), timeout=1.0)
            for receiver, (process, task, end) in list(busy.items()):
                if receiver in ready or time.monotonic() > end:
                    result, lost = None, "" if receiver in ready else "hang"
                    try:
                        result = None if lost else receiver.recv()
                    except EOFError:
                        lost = "crash"
                    del busy[receiver]
                    _end(receiver, process, kill=bool(lost))
                    yield task, result, lost
    finally:
        for receiver, (process, _, _) in busy.items():
            _end(receiver, process, kill=True)


def _end(receiver: Any, process: Any, *, kill: bool) -> None:
    receiver.close()
    if kill:
        process.kill()
    process.join()
