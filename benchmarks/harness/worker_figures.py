"""What the benchmark of dask collections asks of a worker process.

A worker imports this module, and nothing else of the benchmarks, so that its memory is that of a
user's worker.
"""

from __future__ import annotations

import os
import threading
from importlib import import_module


def cpu() -> tuple[float, float]:
    """Return the CPU seconds of this process, and those of its threads that compute tasks."""
    import psutil

    names = {one.native_id: one.name for one in threading.enumerate()}
    process = psutil.Process()
    tasks = sum(
        one.user_time + one.system_time
        for one in process.threads()
        if "Dask-Default-Threads" in names.get(one.id, "")
    )
    used = process.cpu_times()
    return used.user + used.system, tasks


def resident(*modules: str) -> int:
    """Return the resident size of this process in bytes, once modules are imported."""
    for name in modules:
        import_module(name)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
