"""Plots of the convergence of solvers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

from fairconstrained.plotting.style import MARKERS, Axes, Line2D, line_style, plain_text, style_axes
from fairconstrained.solvers.result import Result, Trace
from fairconstrained.utils.arguments import check_finite, check_option, check_positive
from fairconstrained.utils.arrays import Array

_X_LABELS = {"data_passes": "passes over the data", "seconds": "seconds", "iteration": "iterations"}
_SMALLEST = 1e-16  # smaller values are rounding errors


@dataclass(eq=False, repr=False)
class ConvergenceDisplay:
    """Convergence of solver runs: objective, violation and KKT residual, in three panels.

    Create it with :meth:`from_results`. The constructor only stores its arguments.

    Parameters
    ----------
    traces : mapping of str to Trace
        The recorded iterates of each run.
    x : {"data_passes", "seconds", "iteration"}, default="data_passes"
        The quantity on the horizontal axes.
    reference : float or None, default=None
        The best known objective. If given, the first panel shows
        ``abs(objective - reference) / abs(reference)`` on a logarithmic scale.
    feasible : float, default=1e-4
        A point counts as feasible if its violation is at most this (the grey band). Violations of
        zero are drawn at the bottom of the logarithmic axis. The large marker at the end of a run
        is filled if its last point is feasible, and hollow if not.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    axes_ : ndarray of shape (3,) of matplotlib Axes
        The panels of objective, violation and KKT residual.
    lines_ : dict of str to list of matplotlib Line2D
        The lines of each run in the three panels.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.plotting import ConvergenceDisplay
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> fit = FairLogisticClassifier(kappa=0.05).fit
    >>> result = fit(X, y, sensitive_features=groups).result_
    >>> display = ConvergenceDisplay.from_results({"IPC": result})
    >>> [axis.get_ylabel() for axis in display.axes_]
    ['objective', 'violation', 'KKT residual']
    """

    traces: Mapping[str, Trace]
    _: KW_ONLY
    x: str = "data_passes"
    reference: float | None = None
    feasible: float = 1e-4

    @classmethod
    def from_results(
        cls,
        results: Mapping[str, Result] | Iterable[Result] | Result,
        *,
        x: str = "data_passes",
        reference: float | None = None,
        feasible: float = 1e-4,
        log_x: bool | None = None,
        axes: Sequence[Axes] | Array | None = None,
        line_kw: Mapping[str, object] | None = None,
    ) -> Self:
        """Plot the traces of results.

        Parameters
        ----------
        results : mapping of str to Result, iterable of Result, or Result
            The runs. Without names, the legend uses the names of the solvers.
        x, reference, feasible
            See :class:`ConvergenceDisplay`.
        log_x : bool or None, default=None
            Whether the horizontal axes are logarithmic. With None they are if the longest run is
            more than ten times as long as the shortest one.
        axes : array-like of three matplotlib Axes or None, default=None
            The axes to draw on; None creates a new figure.
        line_kw : mapping or None, default=None
            Additional properties of the lines.

        Raises
        ------
        ValueError
            If there are no results, `x` is unknown, `reference` or `feasible` is not valid, or
            there are not three axes.
        TypeError
            If `results` are not results.
        """
        check_matplotlib_support(f"{cls.__name__}.from_results")
        traces = {name: result.trace for name, result in _named(results).items()}
        display = cls(traces, x=x, reference=reference, feasible=feasible)
        return display.plot(log_x=log_x, axes=axes, line_kw=line_kw)

    def plot(
        self,
        *,
        log_x: bool | None = None,
        axes: Sequence[Axes] | Array | None = None,
        line_kw: Mapping[str, object] | None = None,
    ) -> Self:
        """Plot the traces; see :meth:`from_results` for the parameters."""
        check_matplotlib_support(f"{type(self).__name__}.plot")
        import matplotlib.pyplot as plt

        self._check()
        new_figure = axes is None
        if new_figure:
            axes = plt.subplots(1, 3, figsize=(11.0, 3.6), layout="constrained")[1]
        self.axes_ = np.asarray(axes, dtype=object).ravel()
        if len(self.axes_) != 3:
            raise ValueError(f"ConvergenceDisplay needs three axes, got {len(self.axes_)}.")
        self.figure_ = self.axes_[0].figure
        self.lines_: dict[str, list[Line2D]] = {}
        for i, (name, trace) in enumerate(self.traces.items()):
            style = {  # later lines are thinner and do not hide the earlier ones
                **line_style(i), "label": plain_text(name), "marker": MARKERS[i % len(MARKERS)],
                "linewidth": 1.4 + 1.4 * (1.0 - (i + 1) / len(self.traces)), "markersize": 5.5,
                "markeredgecolor": "white", "markeredgewidth": 0.5, "zorder": 3.0 + 0.01 * i,
                "markevery": (0.04 * (i % 3), 0.12),  # as shares of the diagonal of the axes
            }  # fmt: skip
            self.lines_[name] = self._draw(trace, style | dict(line_kw or {}))
        lengths = [getattr(trace, self.x)[-1] for trace in self.traces.values()]
        long_tailed = min(lengths) > 0 and max(lengths) > 10.0 * min(lengths)
        self._scale(long_tailed if log_x is None else log_x)
        handles: Any = [lines[0] for lines in self.lines_.values()]
        look: Any = {"handles": handles, "frameon": False, "handlelength": 3.5}
        if new_figure:
            columns = -(-len(handles) // -(-len(handles) // 5))  # of rows of up to five
            self.figure_.legend(loc="outside upper center", ncols=columns, **look)
        else:
            self.axes_[0].legend(**look)
        return self

    def _check(self) -> None:
        """Check what the constructor has stored."""
        check_option("x", self.x, _X_LABELS)
        if self.reference is not None:
            check_finite("reference", self.reference)
        check_positive("feasible", self.feasible)
        traces = self.traces
        values = traces.values() if isinstance(traces, Mapping) else [traces]
        if not all(isinstance(trace, Trace) for trace in values):
            raise TypeError(f"traces must be a mapping from names to traces; got {traces!r}.")
        if not traces:
            raise ValueError("ConvergenceDisplay: there are no results to plot.")

    def _draw(self, trace: Trace, style: dict[str, Any]) -> list[Line2D]:
        """Draw the lines of a run in the three panels, with a larger marker at the end."""
        columns = [self.x, "objective", "violation", "kkt_residual"]
        x, objective, violation, residual = trace.to_frame()[columns].to_numpy(dtype=float).T
        if self.reference is not None:
            gap = np.abs(objective - self.reference) / max(abs(self.reference), _SMALLEST)
            objective = np.maximum(gap, _SMALLEST)
        last = {**style, "linestyle": "none", "label": "_end", "markevery": None, "markersize": 8.0}
        if not violation[-1] <= self.feasible:
            last |= {"markerfacecolor": "white", "markeredgecolor": style["color"]}
            last |= {"markeredgewidth": 1.4}
        lines, panels = [], (objective, violation, np.maximum(residual, _SMALLEST))
        for axis, column in zip(self.axes_, panels, strict=True):
            y = np.where(np.isfinite(column), column, np.nan)  # values of diverging runs
            empty = {} if np.isfinite(y).any() else {"markevery": None}  # it needs a point
            lines += axis.plot(x, y, **{**style, **empty})
            axis.plot(x[-1:], y[-1:], **last)
        return lines

    def _scale(self, log_x: bool) -> None:
        """Set the scales and the labels, and draw the band of feasible points."""
        objective, violation, residual = self.axes_
        titles = ["objective", "violation", "KKT residual"]
        if self.reference is not None:
            titles[0] = "relative gap of the objective"
            objective.set_yscale("log")
        for axis, title in zip(self.axes_, titles, strict=True):
            axis.set(xlabel=_X_LABELS[self.x], ylabel=title)
            style_axes(axis)
            if log_x:
                axis.set_xscale("log")
        values = np.concatenate([np.asarray(t.violation) for t in self.traces.values()])
        positive = values[np.isfinite(values) & (values > 0.0)]
        least = 10.0 ** np.floor(np.log10(min(positive.min(initial=np.inf), self.feasible)))
        floor = max(least, 1e-3 * self.feasible)  # below it the axis is linear: 0 has a place
        violation.set_yscale("symlog", linthresh=floor, linscale=0.5)
        violation.axhspan(-floor, self.feasible, color="0.93", zorder=0)
        violation.set_ylim(bottom=-0.5 * floor)
        violation.annotate(
            "feasible", (0.98, self.feasible), (0, -3), xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="right", va="top", fontsize="small", color="0.35",
        )  # fmt: skip
        residual.set_yscale("log")


def _named(results: Mapping[str, Result] | Iterable[Result] | Result) -> dict[str, Result]:
    """Return the results by name. Without names, use those of the solvers, numbered if repeated."""
    values = results.values() if isinstance(results, Mapping) else results
    given: list[Result] = list(values) if isinstance(values, Iterable) else [values]
    if not all(isinstance(result, Result) for result in given):
        raise TypeError(
            "results must be the result_ of an estimator, a list of results or a mapping from "
            f"names to results; got {results!r}."
        )
    if isinstance(results, Mapping):
        return dict(results)
    kinds = [type(result.solver).__name__ for result in given]
    names = [
        kind if kinds.count(kind) == 1 else f"{kind} {kinds[: i + 1].count(kind)}"
        for i, kind in enumerate(kinds)
    ]
    return dict(zip(names, given, strict=True))
