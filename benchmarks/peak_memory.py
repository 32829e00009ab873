"""Print by how many bytes one fit raises the peak resident size of a process of its own.

A helper of foundation.py: `python peak_memory.py data.npz CONSTRAINT KAPPA`.
"""

import resource
import sys
import tracemalloc
from pathlib import Path

import common  # noqa: F401  (sets the path)
import numpy as np
import scipy.sparse as sp

from fairconstrained import FairLogisticClassifier


def reset_peak() -> None:
    """Forget the peak so far, so that loading the data does not hide the fit (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        print("the peak cannot be reset here: increments may be too small", file=sys.stderr)


def peak() -> int:
    """Return the peak resident size in bytes."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status = Path("/proc/self/status")  # as ru_maxrss, without what the parent process had
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        kilobytes = int(line.split()[1])
    return 1024 * kilobytes if sys.platform != "darwin" else kilobytes


def main(path: str, constraint: str, kappa: str, how: str) -> None:
    data = np.load(path)
    shape = tuple(data["shape"])
    X = sp.csr_matrix((data["data"], data["indices"], data["indptr"]), shape=shape)
    y, groups = data["y"], data["groups"]
    del data
    clf = FairLogisticClassifier(constraint, float(kappa))
    few = np.arange(500)  # imports and first calls cost memory once, whatever the data
    clf.fit(X[few], y[few], sensitive_features=groups[few])
    if how == "tracemalloc":
        tracemalloc.start()
        clf.fit(X, y, sensitive_features=groups)
        print(tracemalloc.get_traced_memory()[1])
    else:
        reset_peak()
        before = peak()
        clf.fit(X, y, sensitive_features=groups)
        print(peak() - before)


if __name__ == "__main__":
    main(*sys.argv[1:])
