"""This library beside fairlearn, OxonFair, error-parity, fairret and others on foreign scenarios.

The 17 scenarios are those of FairGround's collections; the crossed groups of ABCFair's protocol on
two data sets, with its relative measure of demographic parity, and a task of 18 groups after the
benchmark of humancompatible-train are added. All methods get the same columns, without those that
hold the groups, the same model class and the same four tolerances, on five splits of 70:30.
Methods that see the group are compared among themselves, and have it as a feature.

The frontier of a method joins the means over the splits of its points and of the model without a
constraint. The difference is our accuracy less a peer's at equal gap on test rows, averaged over
four gaps from the smallest that both reach towards that of the model without a constraint.
Packages that are not installed are listed as missing. Results are kept: what is known is not run
again.
"""

import time
import warnings
from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import t as student
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks.harness import frontier
from benchmarks.harness.data import ABCFAIR, MANY_GROUPS, load, scenarios
from benchmarks.harness.frontier import counts, gap, half_width
from benchmarks.harness.options import Default, add_choice
from benchmarks.harness.peer_fits import FREE, METHODS, NOTIONS, OURS, PEERS, SEES, Task
from benchmarks.harness.results import Page, Row, Store, stamp, write_table

SETTINGS = (0.005, 0.02, 0.05, 0.1)
TEST_SHARE = 0.3
FRACTIONS = np.array([0.0, 0.25, 0.5, 0.75])  # of the way from the smallest gap
LITTLE_RANGE = 0.9  # of the gap without a constraint: nothing to compare above it
NO_RANGE = "no range"
ROWS_OF_A_RATE = {"all": 1, "50 test rows": 50}
QUICK = [*FREE, *OURS, "GridSearch", "ThresholdOptimizer"]  # the fastest
MAIN = ("ours, decisions", "ours, thresholds", "ours, trees")  # decided before the first run


def _tasks(name: str, notion: str, kind: str, splits: int) -> Iterator[tuple]:
    """Yield labels and groups of the test rows with the task, for every split."""
    X, y, names = load(name)
    groups = np.unique(names, return_inverse=True)[1]
    if kind == SEES:
        X = np.column_stack([X, groups[:, None] == np.arange(groups.max())])
    options = {"test_size": TEST_SHARE, "stratify": 2 * groups + y}
    for seed in range(splits):
        train, test = train_test_split(np.arange(len(y)), random_state=seed, **options)
        rows = X[train], y[train], groups[train], X[test], groups[test]
        yield y[test], groups[test], Task(*rows, notion, seed)


def measured(name: str, notion: str, method: str, splits: int, store: Store) -> Row:
    """Return the fits of a method on all splits, {"fits": ...}, or {"missing": reason}."""
    about, key = METHODS[method], (name, notion, method, str(splits))
    kept, fits = store.get(key), list[Row]()
    if kept is not None:
        return kept
    bounds = (about.without[notion],) if notion in about.without else SETTINGS
    try:
        for (y, groups, task), bound in product(_tasks(name, notion, about.kind, splits), bounds):
            clock = time.process_time()
            chance = np.asarray(about.fit(task, bound), float).ravel()
            fits.append({
                "split": task.seed,
                "setting": bound,
                "accuracy": float(np.where(y == 1, chance, 1.0 - chance).mean()),
                "counts": counts(y, groups, chance, notion),
                "CPU seconds": time.process_time() - clock,
            })  # fmt: skip
        result: Row = {"fits": fits}
    except ImportError as error:
        return {"missing": str(error)}
    except Exception as error:  # a peer that fails on some data: the page says so
        result = {"missing": f"{name}, {notion}: {type(error).__name__}: {error}"[:200]}
    print(*key, f"{sum(fit['CPU seconds'] for fit in fits):.1f} s", flush=True)
    return store.put(key, result)


def measures(fits: list[Row], *, relative: bool, least: int) -> tuple[np.ndarray, np.ndarray]:
    """Return gaps and accuracies, settings by splits; the last one is that without a constraint."""
    gaps = [gap(fit["counts"], relative=relative, least=least) for fit in fits]
    frame = pd.DataFrame(fits).assign(gap=gaps)
    by_setting = frame.pivot(index="setting", columns="split", values=["gap", "accuracy"])
    return by_setting["gap"].to_numpy(), by_setting["accuracy"].to_numpy()


def verdict(ours: tuple[np.ndarray, ...], theirs: tuple[np.ndarray, ...]) -> Row:
    """Return our accuracy less the peer's at equal gaps, and half its 95% interval."""
    n = ours[0].shape[1]
    free = float(ours[0][-1].mean())
    reach = [float(gaps.mean(axis=1).min()) for gaps, _ in (ours, theirs)]

    def difference(splits) -> float:
        points = [[each[:, splits].mean(axis=1) for each in one] for one in (ours, theirs)]
        low, high = max(gaps.min() for gaps, _ in points), points[0][0][-1]
        at = low + FRACTIONS * (high - low)
        both = [frontier.accuracy_at(-at, -gaps, accuracy).mean() for gaps, accuracy in points]
        return float(both[0] - both[1])

    mean, noise, said = frontier.paired(difference, n, TEST_SHARE / (1.0 - TEST_SHARE))
    t = abs(mean) * student.ppf(0.975, n - 1) / max(noise, 1e-9)
    return {
        "difference": mean,
        "+-": noise,
        "p": float(2.0 * student.sf(t, n - 1)),
        "ours is": said if max(reach) < LITTLE_RANGE * free else NO_RANGE,
        "gap without constraint": free,
        "our smallest gap": reach[0],
        "peer's smallest gap": reach[1],
    }


def holm(rows: pd.DataFrame) -> pd.Series:
    """Return verdicts of which none is wrong with a chance of 95 per cent, by Holm's method."""
    judged = rows[rows["ours is"] != NO_RANGE].sort_values("p")
    adjusted = (judged.p * np.arange(len(judged), 0, -1)).cummax()
    return rows["ours is"].mask(rows.index.isin(judged.index[adjusted > 0.05]), "level")


def compared(name: str, notion: str, results: dict[str, Row]) -> list[Row]:
    """Return a row for each pair of ours and a peer of a kind, by the rates that are compared."""
    rows, relative = list[Row](), name in ABCFAIR and notion == "demographic_parity"
    fits = {method: result["fits"] for method, result in results.items() if "fits" in result}
    free = {METHODS[method].kind: each for method, each in fits.items() if method in FREE}
    seconds = {m: float(np.mean([f["CPU seconds"] for f in each])) for m, each in fits.items()}
    for of, least in ROWS_OF_A_RATE.items():
        some = {
            method: measures(each + free[METHODS[method].kind], relative=relative, least=least)
            for method, each in fits.items()
            if method not in FREE and METHODS[method].kind in free
        }
        for peer, mine in product(PEERS, OURS):
            if {peer, mine} <= some.keys() and METHODS[peer].kind == METHODS[mine].kind:
                head = {"scenario": name, "notion": notion, "peer": peer, "ours": mine}
                head["main"] = mine in MAIN
                cost = {"CPU seconds, ours": seconds[mine], "CPU seconds, peer": seconds[peer]}
                row = verdict(some[mine], some[peer])
                rows.append({**head, "rates of": of, **row, **cost, **stamp(results[mine])})
    return rows


def add_options(parser) -> None:
    """Add scenarios, notions, methods and splits."""
    every = [*scenarios(), *ABCFAIR, MANY_GROUPS]
    add_choice(parser, "--scenarios", every, quick=every[:1], help="data and groups")
    add_choice(parser, "--notions", NOTIONS, quick=NOTIONS[:1], help="notions")
    add_choice(parser, "--methods", METHODS, quick=QUICK, help="methods")
    splits = Default(5, frontier.LEAST_SPLITS)
    parser.add_argument("--splits", type=int, default=splits, help="how many splits")


def run(options) -> None:
    """Run what is not known; write all comparisons, and print who is ahead."""
    warnings.simplefilter("ignore")  # of constant predictions and of few rows
    store, rows, missing = Store(options.out / "scoreboard"), list[Row](), dict[str, str]()
    for name in options.scenarios:
        n_groups = len(np.unique(load(name)[2]))
        for notion in options.notions[:1] if name == MANY_GROUPS else options.notions:
            results = {}
            with threadpool_limits(1):
                for method in options.methods:
                    about = METHODS[method]
                    if notion in about.notions and n_groups <= about.most_groups:
                        results[method] = measured(name, notion, method, options.splits, store)
            missing |= {m: each["missing"] for m, each in results.items() if "missing" in each}
            rows += compared(name, notion, results)
    if rows:
        frame = pd.DataFrame(rows)
        frame["after Holm"] = pd.concat(holm(every) for _, every in frame.groupby("rates of"))
        title = "Our accuracy less a peer's at equal gaps"
        write_table(frame.to_dict("records"), "scoreboard", title, options.out)
        print(table(frame).to_string())
    for method, reason in missing.items():
        print(f"not run: {method}: {reason}")


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how often each of ours is ahead of each peer, and the least difference."""
    lines, judged = list[Row](), rows[rows["ours is"] != NO_RANGE]
    for (peer, ours, notion), every in judged.groupby(["peer", "ours", "notion"], sort=False):
        some, large = (every[every["rates of"] == of] for of in ROWS_OF_A_RATE)
        counted = [each["ours is"].value_counts() for each in (some, large)]
        points, verdicts = 100.0 * some.difference, ("ahead", "level", "behind")
        worst = 100.0 * some.loc[some.difference.idxmin(), ["difference", "+-"]]
        lines.append({
            "peer": peer,
            "ours": ours.removeprefix("ours, "),
            "notion": notion.replace("_", " "),
            **{each: int(counted[0].get(each, 0)) for each in verdicts},
            "behind, Holm": int((every["after Holm"] == "behind").sum()),
            "of 50 rows": " / ".join(str(counted[1].get(each, 0)) for each in verdicts),
            "mean": f"{points.mean():+.2f} +- {half_width(points.to_numpy(), 0.0):.2f}",
            "least": "{:+.2f} +- {:.2f}".format(*worst),
            "CPU": f"{(every['CPU seconds, peer'] / every['CPU seconds, ours']).median():.2g}",
        })  # fmt: skip
    return pd.DataFrame(lines)


def draw(left, right, rows: pd.DataFrame) -> None:
    """Draw the differences by scenario and peer, for each notion."""
    shown = rows[rows.main & (rows["rates of"] == "all")]
    names = list(dict.fromkeys(rows.scenario))
    for ax, notion in zip((left, right), NOTIONS, strict=True):
        some = shown[(shown.notion == notion) & (shown["ours is"] != NO_RANGE)]
        peers = [peer for peer in PEERS if peer in set(some.peer)]
        points = some.pivot(index="scenario", columns="peer", values="difference")
        drawn = 100.0 * points.reindex(index=names, columns=peers)
        ax.imshow(drawn, cmap="RdBu", vmin=-4.0, vmax=4.0, aspect="auto")
        ax.set_xticks(range(len(peers)), peers, rotation=40, ha="right")
        short = [name.removeprefix("folktables_").replace("_small", "") for name in names]
        ax.set_yticks(range(len(names)), short if ax is left else [])
        ax.set_title(notion.replace("_", " "))
        for row in some.to_dict("records"):
            at = peers.index(row["peer"]), names.index(row["scenario"])
            colour = "black" if abs(row["difference"]) < 0.03 else "white"
            weight = "normal" if row["ours is"] == "level" else "bold"
            text = f"{100.0 * row['difference']:+.1f}"
            ax.text(*at, text, ha="center", va="center", weight=weight, fontsize=6, color=colour)


PAGES = (Page("scoreboard", table, draw, ("scoreboard",), height=6.0),)
