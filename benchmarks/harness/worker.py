"""A long-lived process that fits with the library of a given checkout: one side of `compare`.

``python -m benchmarks.harness.worker CHECKOUT`` reads tasks as lines of JSON, and answers each
with a line. It uses public names of the library only, so that older versions can be compared with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

Task = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]


class Worker:
    """A worker process, as its user sees it.

    Parameters
    ----------
    checkout : Path
        The folder that has the package `fairconstrained`.
    """

    def __init__(self, checkout: Path):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.harness.worker", str(checkout.resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def ask(self, task: Task) -> Task:
        """Return the worker's answer to a task.

        Raises
        ------
        RuntimeError
            If the worker has ended; what it printed says why.
        """
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            print(json.dumps(task), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(f"the worker {' '.join(map(str, self.process.args))} has ended")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def _fit(data: tuple[Any, ...], task: Task) -> Callable[[], Task]:
    from fairconstrained import FairLogisticClassifier

    X, y, groups = data

    def run() -> Task:
        estimator = FairLogisticClassifier(task["constraint"], task["kappa"])
        result = estimator.fit(X, y, sensitive_features=groups).result_
        return {
            "passes": result.data_passes,
            "objective": result.objective,
            "violation": result.violation,
        }

    return run


def _path(data: tuple[Any, ...], task: Task) -> Callable[[], Task]:
    from fairconstrained import FairLogisticClassifier, fairness_path

    X, y, groups = data

    def run() -> Task:
        estimator = FairLogisticClassifier(task["constraint"])
        path = fairness_path(estimator, X, y, sensitive_features=groups)
        return {
            "passes": float(path.data_passes.sum()),
            "objective": float(path.objectives.sum()),
            "violation": float(path.violations.max()),
        }

    return run


KINDS = {"fit": _fit, "path": _path}


def perform(task: Task) -> Task:
    """Return the figures of a task and its CPU seconds."""
    from benchmarks.harness.data import load

    run = KINDS[task["kind"]](load(task["data"]), task)
    clock = time.process_time()
    found = run()
    return {**found, "CPU seconds": time.process_time() - clock}


def main(checkout: str) -> None:
    """Answer tasks until the input ends."""
    sys.path.insert(0, checkout)
    import fairconstrained

    package = os.path.dirname(os.path.abspath(fairconstrained.__file__))
    if package != os.path.join(checkout, "fairconstrained"):
        raise SystemExit(f"{checkout} has no package fairconstrained; found {package}")
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        print(json.dumps(perform(json.loads(line))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
