"""Fits of one package with several settings, in a process that has this package only.

``PYTHON -m benchmarks.harness.peer_worker PEER FOLDER``: reads every file ``*.in.npz`` of the
folder, with rows, a notion of fairness and settings, and writes what every fit predicts on the test
rows, and its CPU seconds, to ``*.out.npz``. It imports NumPy and scikit-learn, and what the peer
needs; the interpreter may be that of any environment.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.harness import peer_fits as fits
from benchmarks.harness.peer_fits import NOTIONS

OURS = "fairconstrained"


@dataclass(frozen=True)
class Peer:
    """A method and what it needs.

    Attributes
    ----------
    fits : callable
        Yields the settings and the predictions of the fits of a task.
    package : str
        What must be installed.
    kind : str
        What it is compared with: models of the same class, with the same knowledge.
    random : bool
        Whether predictions are random.
    joint : bool
        Whether one run gives all points: each then has the seconds of all.
    notions : tuple of str
        The notions that it can bound.
    """

    fits: Callable[[fits.Task], fits.Fits]
    package: str
    kind: str = "linear"
    random: bool = False
    joint: bool = False
    notions: tuple[str, ...] = NOTIONS


SEES, TREES = "linear, sees the group", "trees"
PEERS: dict[str, Peer] = {
    "no constraint": Peer(fits.unconstrained, "sklearn"),
    "ours, scores": Peer(fits.ours("score", False), OURS),
    "ours, decisions": Peer(fits.ours("decision", False), OURS),
    "ours with group, decisions": Peer(fits.ours("decision", True), OURS, SEES),
    "ours with interactions, decisions": Peer(fits.our_interactions, OURS, SEES),
    "ours, thresholds by group": Peer(fits.our_thresholds, OURS, SEES),
    "ExponentiatedGradient": Peer(fits.exponentiated_gradient, "fairlearn", random=True),
    "GridSearch": Peer(fits.grid_search, "fairlearn", joint=True),
    "ThresholdOptimizer": Peer(fits.threshold_optimizer, "fairlearn", SEES, random=True),
    "scikit-lego": Peer(fits.scikit_lego, "sklego", notions=NOTIONS[:2]),
    "fairret": Peer(fits.fairret, "fairret"),
    "humancompatible-train": Peer(fits.humancompatible_train, "humancompatible.train"),
    "OxonFair": Peer(fits.oxonfair, "oxonfair", SEES),
    "AIF360 Reweighing": Peer(fits.aif360_reweighing, "aif360", notions=NOTIONS[:1]),
    "error-parity": Peer(fits.error_parity, "error_parity", SEES, random=True),
    "ours boosted, decisions": Peer(fits.boosted, OURS, TREES, notions=NOTIONS[1:]),
    "FairGBM": Peer(fits.fairgbm, "fairgbm", TREES, notions=NOTIONS[1:]),
}


def main(name: str, folder: str) -> None:
    """Run the fits of a peer on all tasks of a folder and write what they predict."""
    warnings.simplefilter("ignore")
    peer, sources = PEERS[name], sorted(Path(folder).glob("*.in.npz"))
    with suppress(Exception):  # few rows may lack what a method needs
        list(peer.fits(fits.Task(np.load(sources[0])).small()))
    for source in sources:
        settings, chances, seconds, clock = [], [], [], time.process_time()
        for setting, chance in peer.fits(fits.Task(np.load(source))):
            seconds.append(time.process_time() - clock)
            settings.append(setting)
            chances.append(np.asarray(chance, float).ravel())
            clock = time.process_time()
        if peer.joint:
            seconds = [sum(seconds)] * len(seconds)
        target = source.with_name(source.name.replace(".in.npz", ".out.npz"))
        np.savez(target, setting=settings, chance=chances, seconds=seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
