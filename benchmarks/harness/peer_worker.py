"""Fits of one package with several settings, in a process that has this package only.

``PYTHON -m benchmarks.harness.peer_worker PEER FOLDER``: reads every file ``*.in.npz`` of the
folder, with rows, a notion of fairness and settings, and writes what every fit predicts on the test
rows, its seconds, and the growth of the peak memory to ``*.out.npz``. It imports NumPy and
scikit-learn, and what the peer needs; the interpreter may be that of any environment.
"""

from __future__ import annotations

import ctypes
import json
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from benchmarks.harness import peer_fits as fits
from benchmarks.harness.fairlearn_peers import NOTIONS

ALL = tuple(NOTIONS)


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


class Peer:
    """A line of the table of peers.

    Parameters
    ----------
    fits : callable
        Yields what the fits of a task predict.
    package : str
        What must be installed.
    sees_group : bool
        Whether groups are needed to predict.
    random : bool
        Whether predictions are random.
    trees : bool
        Whether models are boosted trees; linear models else.
    joint : bool
        Whether one run gives all points: each then has the seconds of all.
    notions : tuple of str
        The notions that it can bound.
    """

    def __init__(
        self,
        fits: Callable[[fits.Task], Iterator[fits.Found]],
        package: str,
        *,
        sees_group: bool = False,
        random: bool = False,
        trees: bool = False,
        joint: bool = False,
        notions: tuple[str, ...] = ALL,
    ):
        self.fits, self.package = fits, package
        self.sees_group, self.random = sees_group, random
        self.trees, self.joint, self.notions = trees, joint, notions

    @property
    def kind(self) -> str:
        """What it is compared with: models of the same class, with the same knowledge."""
        if self.trees:
            return "trees"
        return "linear, sees the group" if self.sees_group else "linear"


PEERS: dict[str, Peer] = {
    "no constraint": Peer(fits.unconstrained, "sklearn"),
    "ours, scores": Peer(fits.ours("score", False), "fairconstrained"),
    "ours, decisions": Peer(fits.ours("decision", False), "fairconstrained"),
    "ours with group, decisions": Peer(
        fits.ours("decision", True), "fairconstrained", sees_group=True
    ),
    "ours with interactions, decisions": Peer(
        fits.our_interactions, "fairconstrained", sees_group=True
    ),
    "ours, thresholds by group": Peer(fits.our_thresholds, "fairconstrained", sees_group=True),
    "ExponentiatedGradient": Peer(fits.exponentiated_gradient, "fairlearn", random=True),
    "GridSearch": Peer(fits.grid_search, "fairlearn", joint=True),
    "ThresholdOptimizer": Peer(fits.threshold_optimizer, "fairlearn", sees_group=True, random=True),
    "scikit-lego": Peer(fits.scikit_lego, "sklego", notions=ALL[:2]),
    "fairret": Peer(fits.fairret, "fairret"),
    "humancompatible-train": Peer(fits.humancompatible_train, "humancompatible.train"),
    "OxonFair": Peer(fits.oxonfair, "oxonfair", sees_group=True),
    "AIF360 Reweighing": Peer(fits.aif360_reweighing, "aif360", notions=ALL[:1]),
    "error-parity": Peer(fits.error_parity, "error_parity", sees_group=True, random=True),
    "ours boosted, decisions": Peer(fits.boosted, "fairconstrained", trees=True, notions=ALL[1:]),
    "FairGBM": Peer(fits.fairgbm, "fairgbm", trees=True, notions=ALL[1:]),
}


def main(name: str, folder: str) -> None:
    """Run the fits of a peer on all tasks of a folder and write what they predict."""
    warnings.simplefilter("ignore")
    sources = sorted(Path(folder).glob("*.in.npz"))
    with suppress(Exception):  # few rows may lack what a method needs
        list(PEERS[name].fits(fits.Task(np.load(sources[0])).small()))
    for source in sources:
        measure(name, source)


def measure(name: str, source: Path) -> None:
    """Run the fits of a task.

    If the process has run an earlier task, its memory may be used again and is not counted.
    """
    task = fits.Task(np.load(source))
    reset_peak()
    before = peak()
    facts, arrays, clock = [], {}, time.process_time()
    for k, one in enumerate(PEERS[name].fits(task)):
        seconds = time.process_time() - clock
        facts.append(
            {"setting": one.setting, "probability": one.probability, "CPU seconds": seconds}
        )
        arrays[f"chance{k}"], arrays[f"score{k}"] = one.chance, one.score
        clock = time.process_time()
    if PEERS[name].joint:
        total = sum(fact["CPU seconds"] for fact in facts)
        facts = [{**fact, "CPU seconds": total} for fact in facts]
    text = json.dumps({"fits": facts, "MiB": (peak() - before) / 2**20})
    target = source.with_name(source.name.replace(".in.npz", ".out.npz"))
    np.savez(target, facts=np.array(text), **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
