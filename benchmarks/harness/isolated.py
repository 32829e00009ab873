"""Run a function in a process of its own, with a limit on its CPU time."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

_GRACE = 5  # seconds between the signal that ends a run and the one that no process survives


class OverLimit(BaseException):
    """The CPU time is used up. Not an Exception, so that nothing on the way catches it."""


def _stop(signum: int, frame: Any) -> None:
    raise OverLimit


def limit_cpu(seconds: float) -> None:
    """Raise `OverLimit` in this process once it has used so many more seconds of CPU time."""
    end = int(time.process_time() + seconds + 1.0)
    signal.signal(signal.SIGXCPU, _stop)
    resource.setrlimit(resource.RLIMIT_CPU, (end, end + _GRACE))


def _child(sender: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        sender.send(function(*arguments))
    except OverLimit:
        sender.send(None)


def run_isolated(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns in a fork of this process, None where it was ended.

    The function calls `limit_cpu` when what is to be limited begins. What it returns is pickled.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, function, arguments))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:  # it was killed
        return None
    finally:
        receiver.close()
        process.join()
