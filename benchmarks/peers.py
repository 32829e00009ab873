"""The same task for this library and for its peers: fairlearn, scikit-lego, fairret and others.

Linear models, five tolerances each (as many settings for peers as for ours; methods without a
tolerance have one point, GridSearch has its ten models). Splits are 70:30, stratified by group and
label. The columns that hold the groups are not features; "sees the group" marks methods that
need it to predict. Every package runs in a process of its own, in the environment that
``--python NAME=PATH`` gives, by default this one. A package that is not installed is listed as
missing.

Results are kept: what is known is not run again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.harness.data import Data, encode
from benchmarks.harness.fairlearn_peers import NOTIONS
from benchmarks.harness.intervals import LEAST_SPLITS
from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.peer_worker import PEERS
from benchmarks.harness.peers_verdicts import (
    SPLIT_OF_COSTS,
    TEST_SHARE,
    UNCONSTRAINED,
    at_gaps,
    frontier,
    speeds,
    summary,
    verdicts,
)
from benchmarks.harness.store import Store
from benchmarks.harness.tables import Row, write_table
from fairconstrained.datasets import (
    fetch_adult,
    fetch_bank,
    fetch_communities,
    fetch_compas,
    fetch_law_school,
)
from fairconstrained.metrics.intervals import largest_gap

SETTINGS = (0.005, 0.01, 0.02, 0.05, 0.1)
ROOT = Path(__file__).parents[1]
WORKER = "benchmarks.harness.peer_worker"
OURS = "ours"
QUICK = [  # the fastest of every kind
    UNCONSTRAINED, "ours, scores", "ours, decisions", "ours, thresholds by group", "GridSearch",
    "ThresholdOptimizer",
]  # fmt: skip
AT_ONCE = 5  # jobs of a process: results are kept when it ends


def _compas() -> tuple[pd.DataFrame, Any, Any]:
    data = fetch_compas()
    rows = data.sensitive_features["race"].isin(["African-American", "Caucasian"])
    return data.data[rows], data.target[rows], data.sensitive_features["race"][rows]


def _with(fetch: Callable[..., Any], column: str, **options: Any) -> Callable[[], tuple]:
    def read() -> tuple[pd.DataFrame, Any, Any]:
        data = fetch(**options)
        groups = data.sensitive_features
        return data.data, data.target, groups[column] if groups.ndim == 2 else groups

    return read


SOURCES: dict[str, Callable[[], tuple]] = {
    "compas": _compas,
    "communities": _with(fetch_communities, "racepctblack"),
    "law_school": _with(fetch_law_school, "race"),
    "bank": _with(fetch_bank, "age", version="additional"),
    "adult": _with(fetch_adult, "sex"),
}


@cache
def rows_of(name: str) -> Data:
    """Return features without the column of the groups, labels 0 and 1, and codes of groups."""
    frame, y, groups = SOURCES[name]()
    y = np.asarray(y)
    column = str(groups.name)
    X = encode(frame.drop(columns=[column], errors="ignore"))
    codes = np.unique(np.asarray(groups.astype(str)), return_inverse=True)[1]
    return X, (y == y.max()).astype(int), codes


def split(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training and the test rows."""
    _, y, groups = rows_of(name)
    return train_test_split(
        np.arange(len(y)), test_size=TEST_SHARE, random_state=seed, stratify=2 * groups + y
    )


def events_of(notion: str, y: np.ndarray) -> list[np.ndarray]:
    """Return the rows whose selection rates a notion compares, one set or two."""
    if notion == "demographic_parity":
        return [np.ones(len(y), dtype=bool)]
    return [y == 1] if notion == "equal_opportunity" else [y == 1, y == 0]


def measures(
    notion: str, y: np.ndarray, groups: np.ndarray, chance: np.ndarray, score: np.ndarray
) -> Row:
    """Return accuracy, AUC, and the gap with its 95% interval; expected ones for random methods."""
    cells, counts = [], []
    for event in events_of(notion, y):
        members = [event & (groups == g) for g in np.unique(groups)]
        rates = np.array([chance[rows].mean() for rows in members])
        cells.append((rates, np.array([rows.sum() for rows in members])))
        counts.append([[float(chance[rows].sum()), int(rows.sum())] for rows in members])
    gap = largest_gap(cells, 0.95)
    positives = min(int((y[groups == g] == 1).sum()) for g in np.unique(groups))
    return {
        "accuracy": float(np.where(y == 1, chance, 1.0 - chance).mean()),
        "AUC": float(roc_auc_score(y, score)),
        "gap": float(gap.value),
        "gap, low": float(gap.low),
        "gap, high": float(gap.high),
        "cells": counts,
        "least positives": positives,
        "rows": len(y),
    }


def run_worker(python: str, peer: str, tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the worker wrote for each task, or why there is nothing."""
    package = PEERS[peer].package
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for k, task in enumerate(tasks):
            np.savez(Path(folder) / f"{k:03d}.in.npz", **task)
        command = [python, "-m", WORKER, peer, folder]
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path}
        ended = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment
        )
        lines = ended.stderr.strip().splitlines() or ["no message"]
        missing = f"No module named '{package.split('.')[0]}" in ended.stderr
        reason = f"{package} is not installed" if missing else lines[-1][:160]
        for k in range(len(tasks)):
            target = Path(folder) / f"{k:03d}.out.npz"
            if not target.exists():
                found.append({"missing": reason})
                continue
            with np.load(target) as file:
                arrays = {name: file[name] for name in file.files}
            found.append({**json.loads(str(arrays.pop("facts"))), "arrays": arrays})
    return found


Job = tuple[str, int]  # notion and split


def points(data: str, peer: str, jobs: list[Job], options: Namespace, store: Store) -> list[Row]:
    """Return a row for every fit of a peer on a data set; from the store where it is known."""
    any_version = options.any_version or not peer.startswith(OURS)
    keys = {
        (notion, seed): (data, notion, str(seed), peer, repr(SETTINGS), "cells")
        for notion, seed in jobs
    }
    known = {job: store.get(key, any_version=any_version) for job, key in keys.items()}
    todo = [job for job, one in known.items() if one is None or "missing" in one]
    todo = [] if options.only_known else todo
    for some in _jobs_by_process(todo):
        tasks = [_task(data, *job) for job in some]
        python = options.pythons.get(peer, sys.executable)
        for job, found in zip(some, run_worker(python, peer, tasks), strict=True):
            rows = found if "missing" in found else _rows(data, *job, peer, found)
            known[job] = store.put(keys[job], rows)
            shown = rows.get("missing") or f"{len(rows['points'])} points"
            print(f"{data} {job[0]} split {job[1]} {peer}: {shown}", flush=True)
    out = []
    for (notion, _), one in known.items():
        if one is not None:
            absent = [{"data": data, "notion": notion, "peer": peer, "missing": one.get("missing")}]
            out += absent if "missing" in one else one["points"]
    return out


def _jobs_by_process(jobs: list[Job]) -> list[list[Job]]:
    """Return the jobs of every process: one job if its memory is shown, else up to five."""
    alone = [[job] for job in jobs if job[1] == SPLIT_OF_COSTS]
    others = [job for job in jobs if job[1] != SPLIT_OF_COSTS]
    return alone + [others[k : k + AT_ONCE] for k in range(0, len(others), AT_ONCE)]


def _task(data: str, notion: str, seed: int) -> dict[str, Any]:
    """Return what the worker reads."""
    X, y, groups = rows_of(data)
    train, test = split(data, seed)
    task = {"X": X[train], "y": y[train], "groups": groups[train], "X_test": X[test]}
    task |= {"groups_test": groups[test], "notion": np.array(notion), "seed": np.array(seed)}
    return {**task, "settings": np.array(SETTINGS)}


def _rows(data: str, notion: str, seed: int, peer: str, found: dict[str, Any]) -> dict[str, Any]:
    """Return the measures of every fit on the test rows."""
    _, y, groups = rows_of(data)
    _, test = split(data, seed)
    rows = []
    for k, fit in enumerate(found["fits"]):
        chance, score = found["arrays"][f"chance{k}"], found["arrays"][f"score{k}"]
        row: Row = {"data": data, "notion": notion, "peer": peer, "setting": fit["setting"]}
        row |= {"split": seed, **measures(notion, y[test], groups[test], chance, score)}
        loss = float(log_loss(y[test], np.clip(score, 1e-6, 1 - 1e-6)))
        row |= {"log loss": loss if fit["probability"] else None}
        rows.append({**row, "CPU seconds": fit["CPU seconds"], "MiB": found["MiB"]})
    return {"points": rows}


def add_options(parser: ArgumentParser) -> None:
    """Add data sets, notions, peers, splits and environments."""
    add_choice(parser, "--data", SOURCES, quick=["compas"], help="data sets")
    add_choice(parser, "--notions", NOTIONS, quick=["demographic_parity"], help="notions")
    add_choice(parser, "--peers", PEERS, quick=QUICK, help="methods")
    parser.add_argument(
        "--splits", type=int, default=Default(10, LEAST_SPLITS), help="how many splits"
    )
    parser.add_argument(
        "--python",
        nargs="+",
        default=[],
        metavar="NAME=PATH",
        help="the interpreter that has the package of a peer, for example fairret=/env/bin/python",
    )
    parser.add_argument(
        "--any-version", action="store_true", help="take our results of other versions as well"
    )
    parser.add_argument("--only-known", action="store_true", help="run nothing, show what is known")


def interpreters(pairs: list[str]) -> dict[str, str]:
    """Return the interpreter of each peer.

    Raises
    ------
    SystemExit
        If a pair does not name a peer or its package, or has no path.
    """
    found = {}
    for pair in pairs:
        name, _, path = pair.partition("=")
        named = [peer for peer, one in PEERS.items() if name in (peer, one.package)]
        if not named or not path:
            known = ", ".join(sorted({one.package for one in PEERS.values()}))
            raise SystemExit(f"--python {pair}: give PACKAGE=PATH, PACKAGE one of {known}")
        found.update(dict.fromkeys(named, path))
    return found


def run(options: Namespace) -> None:
    """Run what is not known; write the points, and four tables of who is ahead."""
    options.pythons = interpreters(options.python)
    store, rows = Store(options.out / "peers"), []
    for data in options.data:
        for peer in options.peers:
            notions = [notion for notion in options.notions if notion in PEERS[peer].notions]
            jobs = [(notion, seed) for notion in notions for seed in range(options.splits)]
            rows += points(data, peer, jobs, options, store)
    fits = [row for row in rows if "missing" not in row]
    missing = {row["peer"]: row["missing"] for row in rows if "missing" in row}
    table = frontier(fits)
    shown = [{name: one for name, one in row.items() if name != "by split"} for row in table]
    write_table(shown, "peers", "Peers: means over splits", options.out)
    for name, title, some in (
        ("ahead", "who is ahead at the same gap", summary(verdicts(table))),
        ("seconds", "seconds and memory", speeds(table)),
        ("gaps", "accuracy at a gap", at_gaps(table)),
    ):
        if some:
            write_table(some, f"peers-{name}", f"Peers: {title}", options.out)
    for peer, reason in missing.items():
        print(f"not run: {peer}: {reason}")
