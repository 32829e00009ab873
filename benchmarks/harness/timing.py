"""Time several runs in turns, and compare them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from statistics import median
from typing import Any

from threadpoolctl import threadpool_limits


def in_turns(
    runs: Mapping[str, Callable[[], Any]],
    repeats: int,
    *,
    threads: Mapping[str, int] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Time the runs A B C A B C ... in this process: what disturbs one disturbs all.

    Parameters
    ----------
    runs : mapping of str to callable
        What to time.
    repeats : int
        How often each of them runs.
    threads : mapping of str to int, optional
        The number of BLAS and OpenMP threads of a run; the others take their defaults.
    clock : callable, optional
        Returns seconds.

    Returns
    -------
    seconds : dict of str to list of float
        In the order they were measured, so that entries of the same position belong together.
    """
    limits = threads or {}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            with threadpool_limits(limits[name]) if name in limits else nullcontext():
                start = clock()
                run()
                seconds[name].append(clock() - start)
    return seconds


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Return the median of the ratios of neighbouring runs."""
    return median(a / b for a, b in zip(ours, theirs, strict=True))
