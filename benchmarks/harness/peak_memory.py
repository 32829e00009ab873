"""The peak resident size of this process, from a moment on."""

from __future__ import annotations

import ctypes
import resource
import sys
from pathlib import Path


def reset_peak() -> None:
    """Forget the peak so far, so that loading the data does not hide the fit (Linux).

    Free memory is returned to the system first. Otherwise a fit would use it again, and it would
    not be counted.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        print(
            "the peak memory cannot be reset on this system: its growth may be too small",
            file=sys.stderr,
        )


def peak() -> int:
    """Return the peak resident size in bytes."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status = Path("/proc/self/status")  # as ru_maxrss, without what the parent process had
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        kilobytes = int(line.split()[1])
    return 1024 * kilobytes if sys.platform != "darwin" else kilobytes
