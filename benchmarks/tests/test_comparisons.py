"""Who is ahead of whom, from figures that are made up; runs of the peers."""

from __future__ import annotations

import sys
from argparse import Namespace

import numpy as np
import pandas as pd
import pytest

from benchmarks import peers
from benchmarks.harness.frontier import (
    Outcome,
    compared,
    counts,
    half_width,
    jackknife_half_width,
    pooled_gap,
    summary,
)
from benchmarks.harness.rank_parity import point as rank_point
from benchmarks.harness.store import Store
from fairconstrained import make_biased_classification


def of_ranks(method: str, fair: float, accuracy: float, splits: int = 3, step: float = 0.01):
    shifts = (-step, 0.0, step)[:splits]
    runs = {
        k: {"accuracy": accuracy + shift, "unfairness": 1.0 - fair, "seconds": 1.0}
        for k, shift in enumerate(shifts)
    }
    return rank_point("law_school", method, 1.0, runs)


def test_a_baseline_above_our_frontier_is_named() -> None:
    points = [
        of_ranks("ours", 0.9, 0.8),
        of_ranks("ours", 0.7, 0.84),
        of_ranks("unconstrained", 0.5, 0.85),
        of_ranks("group AUC", 0.8, 0.815),
        of_ranks("inter-group", 0.8, 0.821),
        of_ranks("inter-group", 0.8, 0.822, step=0.03),
        of_ranks("intra-group", 0.95, 0.7),
        of_ranks("regularisation", 0.95, 0.81),
        of_ranks("regularisation", 0.95, 0.81, 2),
    ]
    rows = compared(points, lambda point: 0.25 / 0.5625)
    outcomes = [Outcome.AHEAD, Outcome.BEHIND, Outcome.LEVEL]
    outcomes += [Outcome.BEYOND, Outcome.BEHIND, Outcome.FEW]
    assert [row["ours is"] for row in rows] == ["", "", "", *outcomes]
    assert rows[3]["difference"] == pytest.approx(0.005)
    assert rows[3]["+- of it"] == pytest.approx(0.0, abs=1e-12)


def of_peer(method: str, accuracy: float, gaps, splits: int = 4):
    gaps = np.broadcast_to(gaps, splits)
    fits = [
        {
            "split": k,
            "setting": 0.05,
            "accuracy": accuracy + 0.002 * (k % 2) - 0.001,
            "counts": [[[500.0, 1000], [500.0 - 1000.0 * gap, 1000]]],
            "CPU seconds": 0.5,
        }
        for k, gap in enumerate(gaps)
    ]
    return peers.points("compas", "demographic_parity", method, fits, {})


def rows_of(*methods):
    return compared([point for some in methods for point in some], lambda point: 3 / 7)


def test_a_peer_is_compared_with_our_frontier_at_its_gap() -> None:
    ours = of_peer("ours, scores", 0.8, 0.01), of_peer("no constraint", 0.84, 0.05)
    others = [of_peer("fairret", 0.81, 0.03), of_peer("GridSearch", 0.83, 0.03)]
    others += [of_peer("scikit-lego", 0.7, 0.004), of_peer("AIF360 Reweighing", 0.82, 0.03)]
    rows = rows_of(*ours, *others, of_peer("OxonFair", 0.9, 0.0))  # which sees the group
    outcomes = [Outcome.AHEAD, Outcome.BEHIND, Outcome.BEYOND, Outcome.LEVEL]
    assert [row["ours is"] for row in rows] == ["", "", *outcomes, ""]
    assert rows[2]["difference"] == pytest.approx(0.01)
    table = summary(pd.DataFrame(rows)).set_index("method")
    assert (table[list(Outcome)[:4]].sum() == 1).all()
    assert table.loc["GridSearch", "least difference"] == "-1.00"


def test_noise_of_gaps_is_part_of_the_interval() -> None:
    ours = of_peer("ours, scores", 0.7, 0.01), of_peer("no constraint", 0.9, 0.03)
    steady = rows_of(*ours, of_peer("fairret", 0.82, 0.02))[-1]
    noisy = rows_of(*ours, of_peer("fairret", 0.82, [0.03, 0.01, 0.03, 0.01]))[-1]
    assert steady["difference"] == pytest.approx(noisy["difference"])
    assert (steady["ours is"], noisy["ours is"]) == (Outcome.BEHIND, Outcome.LEVEL)


def test_intervals_have_the_variance_of_overlapping_splits() -> None:
    values = np.array([0.0, 1.0, 0.0, 1.0])
    variance = (1 / 4 + 3 / 7) * np.var(values, ddof=1)
    assert half_width(values, 3 / 7) == pytest.approx(3.182446 * variance**0.5)
    assert np.isinf(half_width(values[:1], 3 / 7))

    def mean(some: tuple[int, ...]) -> float:
        return float(values[list(some)].mean())

    jackknife = jackknife_half_width(mean, (0, 1, 2, 3), 3 / 7)
    assert jackknife == pytest.approx(half_width(values, 3 / 7))


def test_gaps_are_those_of_expected_and_pooled_rates() -> None:
    y, groups = np.array([1, 0, 1, 0]), np.array([0, 0, 1, 1])
    chance = np.array([0.5, 0.5, 1.0, 0.0])
    odds = counts(y, groups, chance, "equalized_odds")
    assert pooled_gap([odds]) == pytest.approx(0.5)
    turned = counts(y, 1 - groups, chance, "equalized_odds")
    assert pooled_gap([odds, turned]) == pytest.approx(0.0)
    assert len(counts(y, groups, chance, "equal_opportunity")) == 1


def test_a_peer_runs_in_a_process() -> None:
    X, y, groups = make_biased_classification(300, random_state=0)
    task = {"X": X, "y": y, "groups": groups, "X_test": X, "groups_test": groups}
    task |= {"notion": np.array("demographic_parity"), "settings": np.array([0.05])}
    gaps = []
    for name in ("no constraint", "ours, scores"):
        (result,) = peers.run_worker(sys.executable, name, [{**task, "seed": np.array(0)}])
        assert result["seconds"][0] > 0.0
        gaps.append(pooled_gap([counts(y, groups, result["chance"][0], "demographic_parity")]))
    assert gaps[1] < gaps[0]


def test_missing_peers_have_a_reason_and_results_are_kept(tmp_path, monkeypatch) -> None:
    result = {"setting": [0.1], "chance": [np.zeros(5)], "seconds": [1.0]}
    answers = iter(["fairret is not installed", [result]])
    monkeypatch.setattr(peers, "run_worker", lambda *_: next(answers))
    monkeypatch.setattr(peers, "_task", lambda *job: job)
    monkeypatch.setattr(peers, "split", lambda *job: (None, np.arange(5)))
    monkeypatch.setattr(peers, "rows_of", lambda _: (None, np.arange(5) % 2, np.zeros(5)))
    store, options = Store(tmp_path), Namespace(splits=1, pythons={})
    job = ("compas", "demographic_parity", "fairret", options, store)
    assert peers.measured(*job) == {"missing": "fairret is not installed"}
    first = peers.measured(*job)
    assert first["fits"][0]["accuracy"] == 0.6
    assert peers.measured(*job) == first  # without another run
