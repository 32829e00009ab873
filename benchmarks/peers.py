"""The same task for this library and for its peers: fairlearn, scikit-lego, fairret and others.

Linear models, five tolerances each (as many settings for peers as for ours; methods without a
tolerance have one point, GridSearch has its ten models). Splits are 70:30, stratified by group and
label. The columns that hold the groups are not features; "sees the group" marks methods that
need it to predict. Every package runs in a process of its own, in the environment that
``--python PACKAGE=PATH`` gives, by default this one. A package that is not installed is listed as
missing. Results are kept: what is known is not run again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks.harness.data import FRAMES, Data, encode
from benchmarks.harness.frontier import (
    LEAST_SPLITS,
    Point,
    Splits,
    compared,
    counts,
    draw_differences,
    pooled_gap,
    summary,
)
from benchmarks.harness.options import ROOT, Default, add_choice
from benchmarks.harness.pages import Page, boxes
from benchmarks.harness.peer_worker import NOTIONS, OURS, PEERS
from benchmarks.harness.store import Store, stamp
from benchmarks.harness.tables import Row, write_table

SETTINGS = (0.005, 0.01, 0.02, 0.05, 0.1)
TEST_SHARE = 0.3
QUICK = [  # the fastest of every kind
    "no constraint", "ours, scores", "ours, decisions", "ours, thresholds by group", "GridSearch",
    "ThresholdOptimizer",
]  # fmt: skip


@cache
def rows_of(name: str) -> Data:
    """Return features without the column of the groups, labels 0 and 1, and codes of groups."""
    frame, y, groups = FRAMES[name]()
    y = np.asarray(y)
    X = encode(frame.drop(columns=[str(groups.name)], errors="ignore"))
    codes = np.unique(np.asarray(groups.astype(str)), return_inverse=True)[1]
    return X, (y == y.max()).astype(int), codes


def split(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training and the test rows."""
    _, y, groups = rows_of(name)
    cells = 2 * groups + y
    return train_test_split(
        np.arange(len(y)), test_size=TEST_SHARE, random_state=seed, stratify=cells
    )


def run_worker(python: str, peer: str, tasks: list[dict[str, Any]]) -> list[dict[str, Any]] | str:
    """Return the settings, chances and seconds of each task, or why there is nothing."""
    package = PEERS[peer].package
    with tempfile.TemporaryDirectory() as folder:
        for k, task in enumerate(tasks):
            np.savez(Path(folder) / f"{k:03d}.in.npz", **task)
        command = [python, "-m", "benchmarks.harness.peer_worker", peer, folder]
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        env = {**os.environ, "PYTHONPATH": path}
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        if f"No module named '{package.split('.')[0]}" in ended.stderr:
            return f"{package} is not installed"
        if ended.returncode:
            return (ended.stderr.strip().splitlines() or ["no message"])[-1][:160]
        targets = sorted(Path(folder).glob("*.out.npz"))
        return [dict(np.load(target)) for target in targets]


def _task(data: str, notion: str, seed: int) -> dict[str, Any]:
    X, y, groups = rows_of(data)
    train, test = split(data, seed)
    task = {"X": X[train], "y": y[train], "groups": groups[train], "X_test": X[test]}
    task |= {"groups_test": groups[test], "notion": np.array(notion), "seed": np.array(seed)}
    return {**task, "settings": np.array(SETTINGS)}


def _figures(data: str, notion: str, seed: int, result: dict[str, Any]) -> list[Row]:
    """Return accuracy and counts of the fits on a split; expected ones for random methods."""
    _, y, groups = rows_of(data)
    test = split(data, seed)[1]
    return [
        {
            "split": seed,
            "setting": float(setting),
            "accuracy": float(np.where(y[test] == 1, chance, 1.0 - chance).mean()),
            "counts": counts(y[test], groups[test], chance, notion),
            "CPU seconds": float(seconds),
        }
        for setting, chance, seconds in zip(*result.values(), strict=True)
    ]


def measured(data: str, notion: str, peer: str, options: Namespace, store: Store) -> Row:
    """Return the fits of a peer on all splits, {"fits": ...}, or {"missing": reason}."""
    key = (data, notion, peer, str(options.splits))
    known = store.get(key)
    if known is not None:
        return known
    tasks = [_task(data, notion, seed) for seed in range(options.splits)]
    results = run_worker(options.pythons.get(PEERS[peer].package, sys.executable), peer, tasks)
    print(data, notion, peer, results if isinstance(results, str) else "done", flush=True)
    if isinstance(results, str):
        return {"missing": results}
    fits: list[Row] = []
    for seed, result in enumerate(results):
        fits += _figures(data, notion, seed, result)
    return store.put(key, {"fits": fits})


def points(data: str, notion: str, peer: str, fits: list[Row], by: Row) -> list[Point]:
    """Return a point for every setting; its fairness is that of the rates of all splits."""
    out = []
    for setting in dict.fromkeys(fit["setting"] for fit in fits):
        runs = {fit["split"]: fit for fit in fits if fit["setting"] == setting}

        def fairness(splits: Splits, runs: dict[int, Row] = runs) -> float:
            return -pooled_gap([runs[k]["counts"] for k in splits])

        one, ours = PEERS[peer], PEERS[peer].package == OURS or peer == "no constraint"
        row = {**by, "data": data, "notion": notion, "method": peer, "setting": setting}
        row |= {"kind": one.kind, "random": "yes" if one.random else "no"}
        row["CPU seconds"] = float(np.mean([run["CPU seconds"] for run in runs.values()]))
        accuracy = {k: run["accuracy"] for k, run in runs.items()}
        out.append(Point(row, (data, notion, one.kind), ours, accuracy, fairness))
    return out


def add_options(parser: ArgumentParser) -> None:
    """Add data sets, notions, methods, splits and environments."""
    add_choice(parser, "--data", FRAMES, quick=["compas"], help="data sets")
    add_choice(parser, "--notions", NOTIONS, quick=["demographic_parity"], help="notions")
    add_choice(parser, "--peers", PEERS, quick=QUICK, help="methods")
    splits = Default(10, LEAST_SPLITS)
    parser.add_argument("--splits", type=int, default=splits, help="how many splits")
    parser.add_argument(
        "--python",
        nargs="+",
        default=[],
        metavar="PACKAGE=PATH",
        help="the interpreter that has the package of a peer, for example fairret=/env/bin/python",
    )


def interpreters(pairs: list[str]) -> dict[str, str]:
    """Return the interpreters by package, from ``PACKAGE=PATH``."""
    paths = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    packages = {one.package for one in PEERS.values()}
    if len(paths) < len(pairs) or not packages.issuperset(paths):
        raise SystemExit(
            f"--python: give PACKAGE=PATH, PACKAGE one of {', '.join(sorted(packages))}"
        )
    return paths


def run(options: Namespace) -> None:
    """Run what is not known; write all points, and print who is ahead."""
    options.pythons = interpreters(options.python)
    store, every, missing = Store(options.out / "peers"), list[Point](), {}
    for data in options.data:
        for notion in options.notions:
            for peer in options.peers:
                if notion in PEERS[peer].notions:
                    result = measured(data, notion, peer, options, store)
                    every += points(data, notion, peer, result.get("fits", []), stamp(result))
                    missing |= {peer: result["missing"]} if "missing" in result else {}
    rows = compared(every, lambda point: TEST_SHARE / (1.0 - TEST_SHARE))
    write_table(rows, "peers", "Peers: means over splits; fairness is less the gap", options.out)
    print(summary(pd.DataFrame(rows)).to_string())
    for peer, reason in missing.items():
        print(f"not run: {peer}: {reason}")


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return who is ahead of whom, and medians of the CPU seconds of a fit."""
    seconds = rows.groupby("method")["CPU seconds"].median().map("{:.2g}".format)
    shown = summary(rows)
    return shown.assign(**{"CPU seconds": shown.method.map(seconds)})


def draw(differences: Any, times: Any, rows: pd.DataFrame) -> None:
    """Draw differences of accuracy, and CPU seconds."""
    draw_differences(differences, rows)
    ours = [name for name in rows.method if name.startswith("ours")]
    boxes(times, rows["CPU seconds"], rows.method, "CPU seconds of a fit", ours)
    times.set_xscale("log")


PAGES = tuple(Page(name, table, draw, (name,)) for name in ("peers", "boosters"))
