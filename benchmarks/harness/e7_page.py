"""The figures and the page of the experiment with 800 intersectional groups."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmarks.harness.intersections import EPSILON, PARTS
from benchmarks.harness.rank_figures import COLOURS, plt
from benchmarks.harness.tables import Row, as_markdown, environment

MEASURES = {
    "error": "error",
    "average": "average violation",
    "largest": "largest violation",
    "99th percentile": "99th percentile",
}
_STYLES = ("-", "--", ":")


def draw(frame: pd.DataFrame, path: Path) -> None:
    """Draw error and violation of the three parts against epochs, means and ranges over seeds."""
    figure, axes = plt().subplots(
        len(MEASURES), len(PARTS), figsize=(8.4, 8.4), sharex=True, sharey="row"
    )
    for row, (measure, title) in enumerate(MEASURES.items()):
        for column, part in enumerate(PARTS):
            axis = axes[row][column]
            for k, method in enumerate(frame.method.unique()):
                own = frame[(frame.part == part) & (frame.method == method)]
                by_epoch = own.groupby("epoch")[measure]
                mean, low, high = by_epoch.mean(), by_epoch.min(), by_epoch.max()
                axis.plot(mean.index, mean, _STYLES[k % 3], color=COLOURS[k], label=method)
                axis.fill_between(mean.index, low, high, color=COLOURS[k], alpha=0.15, linewidth=0)
            if measure != "error":
                axis.axhline(0.0, color="0.6", linewidth=0.8)
            if row == 0:
                axis.set_title(part, fontsize=10)
            if row == len(MEASURES) - 1:
                axis.set_xlabel("epoch")
            axis.tick_params(labelsize=8)
        axes[row][0].set_ylabel(title, fontsize=9)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.035, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80, bbox_inches="tight")
    plt().close(figure)


def _claim(claims: Sequence[Row]) -> str:
    """Return what the verdicts come to, in a paragraph."""
    held = [row for row in claims if row["claim"] == "holds"]
    lines = [
        f"- {row['reading']}, {row['violation']}: PLADA violates less in "
        f"{row['PLADA less, validation']} splits on validation rows and in "
        f"{row['PLADA less, test']} on test rows. The claim {row['claim']}."
        for row in claims
    ]
    if len(held) == len(claims):
        head = "The paper's claim, that PLADA violates less than the multiplier model, holds."
    elif held:
        head = f"The paper's claim holds in {len(held)} of {len(claims)} comparisons only."
    else:
        head = (
            "The paper's claim does not hold here, in any comparison on rows outside the training "
            "rows."
        )
    return head + "\n\n" + "\n".join(lines)


def write_page(
    folder: Path,
    options: Namespace,
    frame: pd.DataFrame,
    counts: Sequence[int],
    cost: Sequence[Row],
    claims: Sequence[Row],
    fitted: Sequence[Row],
    alone: str,
) -> None:
    """Write e7.md and its figures.

    Parameters
    ----------
    folder : Path
        The folder of the documentation.
    options : Namespace
        The options of the run.
    frame : DataFrame
        The measures of all runs.
    counts : sequence of int
        The number of groups of every split.
    cost : sequence of dict
        The cost of an epoch.
    claims : sequence of dict
        The verdicts.
    fitted : sequence of dict
        Violations on the training rows.
    alone : str
        What the paper's setting does with one constraint per group.
    """
    for reading in frame.reading.unique():
        draw(frame[frame.reading == reading], folder / "_static" / f"e7-{reading}.png")
    final = frame[frame.epoch == frame.epoch.max()].groupby(["reading", "method", "part"])
    last = final[["error", "average", "99th percentile", "largest"]].mean().reset_index()
    short = [
        {key: value for key, value in row.items() if not key.startswith("PLADA less")}
        for row in claims
    ]
    fields = {
        "environment": environment(),
        "n_splits": len(counts),
        "counts": ", ".join(map(str, counts)),
        "epsilon": EPSILON,
        "epochs": frame.epoch.max(),
        "alone": alone,
        "verdicts": as_markdown(short),
        "claim": _claim(claims),
        "training": "\n".join(
            as_markdown([row for row in fitted if row["reading"] == reading])
            for reading in frame.reading.unique()
        ),
        "cost": as_markdown(list(cost)),
        "last": as_markdown(last.round(3).to_dict("records")),
    }
    page = Path(__file__).with_suffix(".md").read_text().format(**fields)
    (folder / "e7.md").write_text(page)
