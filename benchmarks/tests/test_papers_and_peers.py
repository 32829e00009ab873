"""The tables of the papers and of the peers, from figures that are made up."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import peers
from benchmarks.harness.dominance import Outcome
from benchmarks.harness.intervals import half_width, jackknife_half_width
from benchmarks.harness.peers_verdicts import at_gaps, best, frontier, speeds, summary, verdicts
from benchmarks.harness.rank_parity import EXPERIMENTS, dominance, regularized, solved
from fairconstrained.functions.surrogates import Ramp


@pytest.mark.parametrize("experiment", EXPERIMENTS.values())
def test_the_penalty_of_the_regularisation_is_the_printed_one(experiment, rng) -> None:
    """(78) and (83) of IDCA, with lambda = 0.3."""
    low, high, theta, lam = 0.1, 0.35, rng.normal(size=10), 0.3
    y, scores, groups = rng.choice([-1, 1], 80), rng.normal(size=80), np.arange(80) % 2
    notion = experiment.notion(0.0, surrogate=Ramp(), ranks=(low, high))
    term = notion.bind(y, groups, np.ones(80))
    violation = max(term.value(scores, *([theta] if term.n_auxiliary else [])).max(), 0.0)

    def rates(threshold: float) -> list[float]:
        return [Ramp().value(scores[groups == k] - threshold).mean() for k in (0, 1)]

    if experiment.name == "partial_parity":
        p = low + (np.arange(10) + 0.5) / 10 * (high - low)
        largest = max(abs(rate - one) for t, one in zip(theta, p, strict=True) for rate in rates(t))
        penalty = 2.0 * lam / (high - low) * largest
    else:
        first, second = (min(rate, high) - min(rate, low) for rate in rates(0.0))
        penalty = lam / (high - low) * abs(first - second)
    for solver_of in (regularized, solved):
        strength = vars(solver_of(experiment.weight, lam))["strength"]
        assert strength * violation == pytest.approx(penalty, rel=1e-12)


def rank_row(method: str, fair: float, accuracies: list[float]) -> dict:
    runs = {k: {"1 - unfairness": fair, "accuracy": one} for k, one in enumerate(accuracies)}
    return {
        "data": "law_school", "method": method, "level": 1.0, "1 - unfairness": fair, "+-": 0.0,
        "accuracy": float(np.mean(accuracies)), "+- ": 0.001, "seconds": 1.0,
        "splits": len(accuracies), "by split": runs,
    }  # fmt: skip


def of_splits(accuracy: float, n: int = 3) -> list[float]:
    """Return accuracies that differ between splits, by the same amounts for every method."""
    return [accuracy + shift for shift in (-0.01, 0.0, 0.01, 0.0)[:n]]


def test_a_baseline_above_our_frontier_is_named() -> None:
    table = [
        rank_row("ours", 0.9, of_splits(0.80)),
        rank_row("ours", 0.7, of_splits(0.84)),
        rank_row("unconstrained", 0.5, of_splits(0.85)),
        rank_row("group AUC", 0.8, of_splits(0.815)),  # below 0.82
        rank_row("inter-group", 0.8, of_splits(0.821)),  # above 0.82 on every split
        rank_row("inter-group", 0.8, [0.79, 0.85, 0.83]),  # above by less than the noise
        rank_row("intra-group", 0.95, of_splits(0.7)),
        rank_row("regularisation", 0.95, of_splits(0.81)),  # more accurate than our fairest
        rank_row("regularisation", 0.95, of_splits(0.81, 2)),
    ]
    found = dominance(table)
    assert [row["ours is"] for row in found] == [
        Outcome.AHEAD,
        Outcome.BEHIND,
        Outcome.LEVEL,
        Outcome.BEYOND,
        Outcome.BEHIND,
        Outcome.FEW,
    ]
    assert found[0]["difference"] == pytest.approx(0.005)  # 0.82 between our two points
    assert found[0]["+- of it"] == pytest.approx(0.0, abs=1e-12)


def points(method: str, accuracy: float, gap: float, splits: int = 4) -> list[dict]:
    """Return points of some splits, whose accuracies differ by 0.002."""
    return [point(method, accuracy + 0.002 * (k % 2) - 0.001, gap, split=k) for k in range(splits)]


def point(method: str, accuracy: float, gap: float, split: int = 0) -> dict:
    selected = [[500.0, 1000], [500.0 - 1000.0 * gap, 1000]]
    return {
        "data": "compas", "notion": "demographic_parity", "peer": method, "setting": gap,
        "split": split, "accuracy": accuracy, "AUC": 0.7, "log loss": None, "gap": gap,
        "gap, low": 0.0, "gap, high": 0.1, "CPU seconds": 0.5, "MiB": 1.0, "rows": 1000,
        "least positives": 60, "cells": [selected],
    }  # fmt: skip


def test_accuracy_at_a_gap_is_that_of_the_best_setting_within_it() -> None:
    rows = points("ours, scores", 0.8, 0.004) + points("ours, scores", 0.82, 0.04)
    rows += points("fairret", 0.7, 0.004) + points("GridSearch", 0.9, 0.5)
    table = frontier(rows)
    assert best(table, 0.001) is None
    found = {row["method"]: row for row in at_gaps(table)}
    assert (found["ours, scores"]["at 0.02"], found["ours, scores"]["at 0.05"]) == (
        "0.8000",
        "0.8200",
    )
    assert found["GridSearch"]["at 0.05"] == "-"


def test_a_peer_is_compared_with_our_frontier_at_its_own_gap() -> None:
    ours = points("ours, scores", 0.8, 0.01) + points("no constraint", 0.84, 0.05)
    peers = points("fairret", 0.81, 0.03) + points("GridSearch", 0.83, 0.03)
    peers += points("scikit-lego", 0.7, 0.004) + points("AIF360 Reweighing", 0.82, 0.03)
    found = verdicts(frontier(ours + peers))
    assert [one.found.outcome for one in found] == [
        Outcome.AHEAD, Outcome.BEHIND, Outcome.BEYOND, Outcome.LEVEL,
    ]  # fmt: skip
    assert found[0].found.gain == pytest.approx(0.01)  # 0.82 between our two points
    (row,) = summary(found)
    columns = ("ours ahead", "level", "ours behind", "fairer, less accurate")
    assert [row[column] for column in columns] == [1, 1, 1, 1]
    assert row["least difference"] == "-0.0100 +- 0.0000 (gap 0.030, GridSearch)"


def test_seconds_are_multiples_of_those_of_ours_of_the_same_kind_on_the_first_split() -> None:
    slow = [
        {**row, "CPU seconds": 1.5 if row["split"] == 0 else 9.0, "MiB": 7.0}
        for row in points("fairret", 0.7, 0.004)
    ]
    rows = points("ours, decisions", 0.8, 0.004) + slow
    ours, other = speeds(frontier(rows))
    shown = ("method", "times the CPU seconds", "MiB", "tasks")
    assert [ours[name] for name in shown] == ["ours, decisions", "1", "1.0", 1]
    assert [other[name] for name in shown] == ["fairret", "3", "7.0", 1]


def test_intervals_have_the_variance_of_overlapping_splits() -> None:
    values = np.array([0.0, 1.0, 0.0, 1.0])
    variance = (1 / 4 + 3 / 7) * np.var(values, ddof=1)
    assert half_width(values, 3 / 7) == pytest.approx(3.182446 * variance**0.5)
    assert np.isinf(half_width(values[:1], 3 / 7))


def test_the_jackknife_of_a_mean_is_the_interval_of_the_mean() -> None:
    values = np.random.default_rng(0).normal(size=6)
    found = jackknife_half_width(
        lambda some: float(values[list(some)].mean()), tuple(range(6)), 0.5
    )
    assert found == pytest.approx(half_width(values, 0.5))


def test_noise_of_gaps_is_part_of_the_interval() -> None:
    """A steep frontier whose gaps differ between splits says little about the accuracy at a gap."""
    ours = points("ours, scores", 0.7, 0.01) + points("ours, scores", 0.9, 0.03)
    steady = points("fairret", 0.82, 0.02)
    noisy = [
        {**row, "cells": point("fairret", 0.82, 0.02 + 0.01 * (-1) ** row["split"])["cells"]}
        for row in steady
    ]
    first, second = (verdicts(frontier(ours + one))[0].found for one in (steady, noisy))
    assert first.gain == pytest.approx(second.gain)
    assert (first.outcome, second.outcome) == (Outcome.BEHIND, Outcome.LEVEL)


def test_pooled_gaps_add_counts_before_they_compare() -> None:
    """Gaps of opposite sign on two splits cancel; the mean of the single gaps does not."""
    up = point("fairret", 0.8, 0.1)
    down = point("fairret", 0.8, 0.1, split=1)
    down["cells"] = [list(reversed(down["cells"][0]))]
    (row,) = frontier([up, down])
    assert row["gap"] == pytest.approx(0.1)
    assert row["pooled gap"] == pytest.approx(0.0)


def test_gap_and_accuracy_of_random_predictions_are_expected_ones() -> None:
    y, groups = np.array([1, 0, 1, 0]), np.array([0, 0, 1, 1])
    chance = np.array([0.5, 0.5, 1.0, 0.0])
    found = peers.measures("equalized_odds", y, groups, chance, chance)
    assert found["gap"] == pytest.approx(0.5)
    assert found["accuracy"] == pytest.approx(0.75)
    assert found["least positives"] == 1
