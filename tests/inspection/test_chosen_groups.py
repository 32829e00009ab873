"""Which groups are shown where there are many."""

import numpy as np
import pytest

from fairconstrained.data.groups import Groups
from fairconstrained.inspection.deciding import choose_groups, with_others


def test_few_groups_are_all_shown_from_the_highest_down():
    choice = choose_groups(np.array([0.2, np.nan, 0.9, 0.5]), np.ones(4))
    assert choice.shown.tolist() == [2, 3, 0, 1] and len(choice.others) == 0


@pytest.mark.parametrize("n_groups", [9, 30, 200])
def test_many_groups_show_extremes_and_the_largest(n_groups, rng):
    values, sizes = rng.random(n_groups), rng.integers(1, 1000, n_groups)
    values[3] = np.nan
    choice = choose_groups(values, sizes)
    assert len(choice.shown) == 8
    assert sorted([*choice.shown, *choice.others]) == list(range(n_groups))
    assert {np.nanargmax(values), np.nanargmin(values)} <= set(choice.shown)
    between = np.setdiff1d(np.arange(n_groups), np.argsort(values)[[0, 1, 2, -4, -3, -2]])
    assert between[np.argmax(sizes[between])] in choice.shown
    shown = values[choice.shown]
    assert np.all(np.diff(shown[~np.isnan(shown)]) <= 0.0)
    assert choice.label.startswith(f"{n_groups - 8} other")


def test_certain_extremes_come_before_small_groups():
    values = np.array([1.0, 0.99, 0.98, 0.8, 0.7, 0.5, 0.5, 0.5, 0.5, 0.2, 0.1, 0.0])
    sizes = np.array([2, 2, 2, 500, 500, 5, 5, 5, 5, 300, 300, 2])
    spread = 1.0 / np.sqrt(sizes)
    limits = {"low": np.clip(values - spread, 0, 1), "high": np.clip(values + spread, 0, 1)}
    choice = choose_groups(values, sizes, **limits)
    assert {0, 3, 4, 9, 10, 11} <= set(choice.shown.tolist())
    assert 1 not in choice.shown


def test_remaining_groups_are_one_group_at_the_end():
    codes = np.array([0, 1, 2, 3, -1, 3, 1])
    groups = Groups(codes, np.array(["a", "b", "c", "d"]))
    merged = with_others(groups, choose_groups(np.arange(4.0), np.array([1, 2, 1, 2]), limit=2))
    assert merged.names.tolist() == ["d", "a", "2 others"]
    assert merged.codes.tolist() == [1, 2, 2, 0, -1, 0, 2]
