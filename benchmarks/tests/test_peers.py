"""Runs of the peers: processes, environments, and what is kept."""

from __future__ import annotations

import sys
from argparse import Namespace

import numpy as np
import pytest

from benchmarks import peers
from benchmarks.harness.store import Store
from fairconstrained import make_biased_classification


def test_a_peer_runs_in_a_process_and_a_missing_one_gives_a_reason(tmp_path) -> None:
    X, y, groups = make_biased_classification(300, random_state=0)
    task = {
        "X": X, "y": y, "groups": groups, "X_test": X, "groups_test": groups,
        "notion": np.array("demographic_parity"), "settings": np.array([0.05]),
        "seed": np.array(0),
    }  # fmt: skip
    free, ours = (
        peers.run_worker(sys.executable, name, [task])[0]
        for name in ("no constraint", "ours, scores")
    )
    for found in (free, ours):
        assert found["fits"][0]["CPU seconds"] > 0.0
        assert found["MiB"] >= 0.0
        assert found["arrays"]["chance0"].shape == y.shape
    gaps = [
        peers.measures("demographic_parity", y, groups, one["arrays"]["chance0"], y)["gap"]
        for one in (free, ours)
    ]
    assert gaps[1] < gaps[0]


@pytest.fixture
def calls(monkeypatch) -> list[tuple]:
    """The method and the tasks of every process, which finds no package."""
    found: list[tuple] = []

    def run_worker(python, peer, tasks):
        found.append((peer, tasks))
        return [{"missing": "x is not installed"} for _ in tasks]

    monkeypatch.setattr(peers, "run_worker", run_worker)
    monkeypatch.setattr(peers, "_task", lambda data, *job: job)
    return found


OPTIONS = Namespace(any_version=False, only_known=False, pythons={})


def test_results_of_peers_are_kept(tmp_path, calls) -> None:
    store, job = Store(tmp_path), ("demographic_parity", 0)
    (row,) = peers.points("compas", "fairret", [job], OPTIONS, store)
    assert row["missing"] == "x is not installed"
    known = Namespace(**{**vars(OPTIONS), "only_known": True})
    assert peers.points("compas", "fairret", [job], known, store) == [row]
    assert calls == [("fairret", [job])]


def test_interpreters_are_given_by_package_or_by_method() -> None:
    found = peers.interpreters(["fairlearn=/a/python", "OxonFair=/b/python"])
    assert found["ExponentiatedGradient"] == found["GridSearch"] == "/a/python"
    assert found["OxonFair"] == "/b/python"
    with pytest.raises(SystemExit, match="PACKAGE=PATH"):
        peers.interpreters(["nothing"])
