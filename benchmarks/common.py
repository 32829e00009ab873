"""What the benchmarks share: data, timing in turns, verdicts, tables.

Importing this module puts the repository on the path, so import it before the package.
"""

import csv
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
if (ROOT.parent / "shared" / "data").is_dir():
    os.environ.setdefault("FAIRCONSTRAINED_DATA", str(ROOT.parent / "shared" / "data"))

import numpy as np  # noqa: E402
import scipy  # noqa: E402
import sklearn  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

from fairconstrained.datasets import fetch_a9a  # noqa: E402

Row = dict[str, Any]


def load_a9a() -> tuple[Any, np.ndarray, np.ndarray]:
    """Return X (32,561 x 123, CSR), y (0 or 1) and sex."""
    bunch = fetch_a9a()
    return bunch.data, bunch.target.to_numpy(), bunch.sensitive_features.to_numpy()


def n_bytes(X: Any) -> int:
    """Return the size of a dense or CSR matrix."""
    if isinstance(X, np.ndarray):
        return X.nbytes
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


def in_turns(
    runs: Mapping[str, Callable[[], Any]], repeats: int, *, threads: Mapping[str, int] | None = None
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
                start = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Return the median of the ratios of neighbouring runs."""
    return median(a / b for a, b in zip(ours, theirs, strict=True))


def at_most(value: float, limit: float) -> str:
    """Return "met" if value <= limit, else "not met"."""
    return "met" if value <= limit else "not met"


def at_least(value: float, limit: float) -> str:
    """Return "met" if value >= limit, else "not met"."""
    return "met" if value >= limit else "not met"


def environment() -> str:
    """Return the versions, the processors and how busy they were, for the head of a table."""
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, {os.cpu_count()} processors{load}, "
        f"{time.strftime('%Y-%m-%d %H:%M')}"
    )


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def write_table(rows: list[Row], name: str, title: str, out: Path) -> None:
    """Print the rows and write them to `name`.csv (all digits) and `name`.md (to be read)."""
    out.mkdir(parents=True, exist_ok=True)
    columns = list(rows[0])
    with (out / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    cells = [columns] + [[_cell(row[column]) for column in columns] for row in rows]
    widths = [max(len(line[k]) for line in cells) for k in range(len(columns))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) + " |" for r in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    text = f"## {title}\n\n{environment()}\n\n" + "\n".join(lines) + "\n"
    (out / f"{name}.md").write_text(text)
    print(text, flush=True)
