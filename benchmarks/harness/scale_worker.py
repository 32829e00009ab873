"""What the benchmark of dask collections asks of a worker process.

A worker imports this module, and nothing else of the benchmarks, so that its memory is that of a
user's worker.
"""

from __future__ import annotations

import os
import threading


def cpu() -> tuple[float, float]:
    """Return the CPU seconds of this process, and those of its threads that compute tasks."""
    import psutil

    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    process = psutil.Process()
    tasks = sum(
        thread.user_time + thread.system_time
        for thread in process.threads()
        if "Dask-Default-Threads" in names.get(thread.id, "")
    )
    used = process.cpu_times()
    return used.user + used.system, tasks


def resident() -> int:
    """Return the resident size of this process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
