"""Who is ahead of whom, from figures that are made up; fits of the peers."""

from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from benchmarks import scoreboard
from benchmarks.harness.data import ABCFAIR, MANY_GROUPS, load
from benchmarks.harness.frontier import BEYOND, FEW, compared, counts, gap, half_width
from benchmarks.harness.frontier import jackknife_half_width as jackknife
from benchmarks.harness.peer_fits import METHODS, Method
from benchmarks.harness.rank_parity import point as rank_point
from benchmarks.harness.results import Store
from fairconstrained import make_biased_classification


def of_ranks(method: str, fair: float, accuracy: float, step: float = 0.01, splits: int = 3):
    run = {"unfairness": 1.0 - fair, "seconds": 1.0}
    runs = [{**run, "accuracy": accuracy + shift} for shift in (-step, 0.0, step)]
    return rank_point("law_school", method, 1.0, runs[:splits])


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
    ]
    rows = compared(points, 0.25 / 0.5625)
    outcomes = ["ahead", "behind", "level", BEYOND, "behind"]
    assert [row["ours is"] for row in rows] == ["", "", "", *outcomes]
    assert rows[3]["difference"] == pytest.approx(0.005)
    assert rows[3]["+- of it"] == pytest.approx(0.0, abs=1e-12)
    few = [of_ranks("ours", 0.9, 0.8, splits=2), of_ranks("group AUC", 0.8, 0.9, splits=2)]
    assert compared(few, 0.25 / 0.5625)[1]["ours is"] == FEW


def fits(accuracy: float, gap: float, noise: float = 0.002, setting: float = 0.05):
    return [
        {
            "split": k,
            "setting": setting,
            "accuracy": accuracy + noise * (-1) ** k,
            "counts": [[[500.0, 1000], [500.0 - 1000.0 * gap, 1000], [9.0, 9]]],
            "CPU seconds": 0.5,
        }
        for k in range(4)
    ]


def verdicts(peers, relative: bool = False, **ours):
    free = fits(0.84, 0.2, setting=1.0)
    results = {"no constraint": free, "ours, decisions": fits(0.8, 0.0, **ours), **peers}
    name = ABCFAIR[0] if relative else "made up"
    results = {method: {"fits": each} for method, each in results.items()}
    return pd.DataFrame(scoreboard.compared(name, "demographic_parity", results))


def test_ours_and_a_peer_are_compared_at_equal_gaps() -> None:
    peers = {
        "fairret": fits(0.79, 0.0),
        "GridSearch": fits(0.81, 0.0),
        "humancompatible-train": fits(0.82, 0.1),  # between our point and no constraint
        "ExponentiatedGradient": fits(0.84, 0.19),
        "OxonFair": fits(0.9, 0.0),  # it sees the group, as none of ours
    }
    rows = verdicts(peers)
    large = rows[rows["rates of"] == "50 test rows"].set_index("peer")
    assert large["ours is"].to_dict() == {
        "ExponentiatedGradient": "no range",
        "GridSearch": "behind",
        "fairret": "ahead",
        "humancompatible-train": "level",
    }
    # the least gap of both and 1/4, 1/2, 3/4 of the way to no constraint
    assert large.difference["fairret"] == pytest.approx(0.01 * np.mean([1.0, 0.75, 0.5, 0.25]))
    free = rows.groupby("rates of")["gap without constraint"].max().to_dict()
    assert free == pytest.approx({"all": 0.7, "50 test rows": 0.2})  # 9 of 9 are selected
    shown = scoreboard.table(rows.assign(**{"after Holm": scoreboard.holm(rows)}))
    assert shown["of 50 rows"].tolist() == ["0 / 0 / 1", "1 / 0 / 0", "0 / 1 / 0"]
    relative = verdicts({"fairret": fits(0.79, 0.0)}, relative=True).iloc[-1]
    assert relative["gap without constraint"] == pytest.approx(1.0 - 0.3 / (809 / 2009))


def test_a_table_of_many_verdicts_has_few_wrong_ones() -> None:
    peers = {"fairret": fits(0.79, 0.0), "GridSearch": fits(0.795, 0.0, noise=0.0035)}
    rows = verdicts(peers)[2:].reset_index(drop=True)
    assert scoreboard.holm(rows).tolist() == rows["ours is"].tolist() == ["ahead", "ahead"]
    many = pd.concat([rows.assign(p=[0.001, 0.03]), rows.assign(p=[0.5, 0.02])], ignore_index=True)
    assert scoreboard.holm(many).tolist() == ["ahead", "level", "level", "level"]


def test_intervals_have_the_variance_of_overlapping_splits() -> None:
    values = np.array([0.0, 1.0, 0.0, 1.0])
    variance = (1 / 4 + 3 / 7) * np.var(values, ddof=1)
    assert half_width(values, 3 / 7) == pytest.approx(3.182446 * variance**0.5)
    assert np.isinf(half_width(values[:1], 3 / 7))

    jackknifed = jackknife(lambda some: values[some].mean(), 4, 3 / 7)
    assert jackknifed == pytest.approx(half_width(values, 3 / 7))


def test_gaps_are_those_of_expected_rates() -> None:
    y, groups = np.array([1, 0, 1, 0]), np.array([0, 0, 1, 1])
    odds = counts(y, groups, np.array([0.5, 0.5, 1.0, 0.0]), "equalized_odds")
    assert gap(odds) == pytest.approx(0.5)
    assert gap(odds, least=2) == 0.0
    assert gap([[[1.0, 4], [3.0, 4]]], relative=True) == pytest.approx(0.5)


def test_methods_yield_chances_or_a_reason(monkeypatch, tmp_path) -> None:
    data = make_biased_classification(1000, gap=0.4, random_state=0)
    monkeypatch.setattr(scoreboard, "load", lambda name: data)

    def measured(method: str):
        return scoreboard.measured("made up", scoreboard.NOTIONS[0], method, 1, Store(tmp_path))

    names = ("no constraint", "ours, scores", "ours, thresholds")
    gaps = [gap(measured(name)["fits"][0]["counts"]) for name in names]
    assert max(gaps[1:]) < gaps[0]
    for error, reason in ((ImportError("none"), "none"), (ValueError("few"), "ValueError: few")):
        monkeypatch.setitem(METHODS, "fairret", Method(Mock(side_effect=error)))
        assert measured("fairret")["missing"].endswith(reason)
    assert list(tmp_path.glob("*fairret*"))  # failures are kept, missing packages are not


def test_groups_are_binary_or_crossed(data_folder) -> None:
    names = ("adult:race", *ABCFAIR, MANY_GROUPS)
    assert [len(np.unique(load(name)[2])) for name in names] == [2, 20, 26, 18]
