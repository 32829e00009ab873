"""Plots of the rates of predictions by group, for one or several models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairconstrained.data.alignment import check_same_rows
from fairconstrained.data.groups import Groups
from fairconstrained.inspection.scores import check_two_classes, groups_of
from fairconstrained.metrics.rates import DEFAULT_RATES, RATES, Predictions
from fairconstrained.plotting.style import (
    COLOURS,
    GREY,
    HATCHES,
    axes_for,
    legend_above,
    style_axes,
)
from fairconstrained.utils.meta_estimators import (
    best_estimator,
    favourable_label,
    prediction_groups,
)
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import Array, ArrayLike, Classifier, MatrixLike
from fairconstrained.utils.validation import check_confidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer, ErrorbarContainer

_BAR_WIDTH = 0.26  # inches
_LIGHTEST = 0.35  # colour strength of the first model; the last one has 1


class GroupMetricsDisplay:
    """Bars of rates by group with confidence intervals, for one model or several side by side.

    Create it with :meth:`from_estimator` or :meth:`from_predictions`. The constructor only stores
    its arguments. The rates are those of :func:`~fairconstrained.metrics.group_rates`.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        For each model, a table with a row for each group. Each metric has its column and two
        columns with the suffixes ``_low`` and ``_high``.
    metrics : sequence of str
        The metrics to draw.
    confidence : float or None, default=0.95
        The confidence level of the intervals; None draws no intervals.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.
    bars_ : dict of (str, str) to matplotlib BarContainer
        The bars of each model and group, one for each metric.
    errorbars_ : dict of (str, str) to matplotlib ErrorbarContainer
        The confidence intervals of the bars.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.plotting import GroupMetricsDisplay
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> before = FairLogisticClassifier(None).fit(X, y)
    >>> after = FairLogisticClassifier(kappa=0.02).fit(X, y, sensitive_features=groups)
    >>> display = GroupMetricsDisplay.from_estimator(
    ...     {"before": before, "after": after}, X, y, sensitive_features=groups
    ... )
    >>> display.tables["before"]["selection_rate"].round(2).to_list()
    [0.39, 0.6]
    """

    def __init__(
        self,
        tables: Mapping[str, pd.DataFrame],
        *,
        metrics: Sequence[str] = DEFAULT_RATES,
        confidence: float | None = 0.95,
    ):
        self.tables = tables
        self.metrics = metrics
        self.confidence = confidence

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier | Mapping[str, Classifier],
        X: MatrixLike,
        y: ArrayLike,
        *,
        sensitive_features: MatrixLike | None = None,
        sample_weight: ArrayLike | None = None,
        metrics: Sequence[str] = DEFAULT_RATES,
        confidence: float | None = 0.95,
        ax: Axes | None = None,
    ) -> GroupMetricsDisplay:
        """Plot the rates of fitted classifiers.

        Parameters
        ----------
        estimator : classifier or mapping of str to classifier
            A fitted binary classifier, a pipeline or a search; or several by name, for example
            ``{"before": ..., "after": ...}``.
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The labels.
        sensitive_features : array-like, DataFrame or None, default=None
            The groups; None reads them from the `sensitive_columns` of the (last) classifier.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The sample weights.
        metrics : sequence of str, optional
            Metrics among "selection_rate", "true_positive_rate", "false_positive_rate", "accuracy",
            "error_rate", "precision" and "base_rate". The default is the first four.
        confidence : float or None, default=0.95
            The confidence level of each single interval (Clopper-Pearson); None draws no intervals.
        ax : matplotlib Axes or None, default=None
            The axes to draw on; None creates a new figure.

        Returns
        -------
        display : GroupMetricsDisplay
            The display, drawn.
        """
        check_same_rows(
            test=True, X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight
        )
        models = estimator if isinstance(estimator, Mapping) else {"": estimator}
        if not models:
            raise ValueError("GroupMetricsDisplay: there are no models to plot.")
        for model in models.values():
            check_two_classes(best_estimator(model))
        last = list(models.values())[-1]
        predictions = {
            name: best_estimator(model).predict(X, **prediction_groups(model, sensitive_features))
            for name, model in models.items()
        }
        return cls.from_predictions(
            y,
            predictions,
            sensitive_features=groups_of(last, X, sensitive_features),
            sample_weight=sample_weight,
            metrics=metrics,
            confidence=confidence,
            pos_label=favourable_label(last),
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike | Mapping[str, ArrayLike],
        *,
        sensitive_features: MatrixLike | Groups,
        sample_weight: ArrayLike | None = None,
        metrics: Sequence[str] = DEFAULT_RATES,
        confidence: float | None = 0.95,
        pos_label: object = None,
        ax: Axes | None = None,
    ) -> GroupMetricsDisplay:
        """Plot the rates of given predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            The labels.
        y_pred : array-like of shape (n_samples,) or mapping of str to array-like
            The predictions of a model, or those of several models by name.
        sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
            The groups.
        sample_weight, metrics, confidence, ax
            See :meth:`from_estimator`.
        pos_label : label or None, default=None
            The positive class; None means the second of the sorted classes.

        Returns
        -------
        display : GroupMetricsDisplay
            The display, drawn.
        """
        models = y_pred if isinstance(y_pred, Mapping) else {"": y_pred}
        for metric in metrics:
            check_option("metrics", metric, dict.fromkeys(RATES, ""))
        level = 0.95 if confidence is None else check_confidence(confidence)
        tables = {
            name: Predictions.check(
                y_true, predictions, sensitive_features, sample_weight, pos_label
            ).table(metrics, level).iloc[:-1]
            for name, predictions in models.items()
        }  # fmt: skip
        return cls(tables, metrics=tuple(metrics), confidence=confidence).plot(ax=ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """The size of the figure in inches; the width depends on the number of bars."""
        n_groups = len(next(iter(self.tables.values())))
        places = _places(len(self.metrics), n_groups, len(self.tables))
        return float(np.clip(_BAR_WIDTH * (places.max() + 2.5) + 1.0, 5.2, 14.0)), 3.9

    def plot(self, *, ax: Axes | None = None) -> GroupMetricsDisplay:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            The axes to draw on; None creates a new figure of size `figsize`.

        Returns
        -------
        display : GroupMetricsDisplay
            The display itself.
        """
        if not self.tables or not self.metrics:
            raise ValueError("GroupMetricsDisplay: there are no models or no metrics to plot.")
        groups = list(next(iter(self.tables.values())).index)
        places = _places(len(self.metrics), len(groups), len(self.tables))
        self.ax_ = axes_for(ax, f"{type(self).__name__}.plot", figsize=self.figsize)
        self.figure_ = self.ax_.figure
        style_axes(self.ax_)
        self.ax_.grid(False, axis="x")
        self.bars_: dict[tuple[str, str], BarContainer] = {}
        self.errorbars_: dict[tuple[str, str], ErrorbarContainer] = {}
        for m, (model, table) in enumerate(self.tables.items()):
            for k, group in enumerate(groups):
                self._draw(places[:, k, m], model, table.loc[group], k, m)
        titles = [fill(RATES[m].title, 14) for m in self.metrics]
        self.ax_.set_xticks(places.mean(axis=(1, 2)), titles)
        self.ax_.tick_params(axis="x", length=0.0)
        self.ax_.set_xlim(places.min() - 1.0, places.max() + 1.0)
        self.ax_.set_ylabel("rate")
        self._scale(groups)
        return self

    def _draw(self, x: Array, model: str, rates: pd.Series, k: int, m: int) -> None:
        """Draw the bars of a group and a model."""
        values = rates[list(self.metrics)].to_numpy(dtype=float)
        group = str(rates.name)
        self.bars_[model, group] = self.ax_.bar(
            x, np.nan_to_num(values), width=0.92, **self._bar_style(k, m), zorder=2.0
        )
        if self.confidence is None:
            return
        low = values - rates[[f"{name}_low" for name in self.metrics]].to_numpy(dtype=float)
        high = rates[[f"{name}_high" for name in self.metrics]].to_numpy(dtype=float) - values
        known = np.isfinite(values)
        self.errorbars_[model, group] = self.ax_.errorbar(
            x[known], values[known], yerr=np.maximum([low[known], high[known]], 0.0),
            fmt="none", ecolor="black", elinewidth=0.9, capsize=2.0, zorder=3.0,
        )  # fmt: skip

    def _bar_style(self, k: int, m: int) -> dict[str, Any]:
        """Return the style of the bars: hue and hatch of group k, colour strength of model m."""
        from matplotlib.colors import to_rgb

        hue = np.array(to_rgb(COLOURS[k % len(COLOURS)]))
        tint = _tint(m, len(self.tables))
        return {
            "facecolor": tuple(1.0 - tint * (1.0 - hue)),
            "edgecolor": "white" if tint > 0.5 else tuple(0.8 * hue),
            "hatch": HATCHES[k % len(HATCHES)],
            "linewidth": 0.0 if tint > 0.5 else 0.8,
        }

    def _scale(self, groups: list[str]) -> None:
        """Draw the legend, and set the vertical axis to [0, 1]."""
        from matplotlib.patches import Patch

        self.ax_.set_ylim(0.0, 1.0)
        last = len(self.tables) - 1
        handles = [Patch(label=name, **self._bar_style(k, last)) for k, name in enumerate(groups)]
        if last:
            handles += [
                Patch(
                    facecolor=str(1.0 - 0.65 * _tint(m, last + 1)), edgecolor=GREY, linewidth=0.8,
                    label=name,
                )
                for m, name in enumerate(self.tables)
            ]  # fmt: skip
        note = ""
        if self.confidence is not None:
            note = f"lines: {100.0 * self.confidence:g}% confidence intervals"
        legend_above(self.ax_, handles, title=note, alignment="left", title_fontsize="small")


def _tint(m: int, n_models: int) -> float:
    """Return the colour strength of a model, from light (first) to full (last)."""
    return 1.0 if n_models == 1 else _LIGHTEST + (1.0 - _LIGHTEST) * m / (n_models - 1)


def _places(n_metrics: int, n_groups: int, n_models: int) -> Array:
    """Return the positions of the bars, of shape (n_metrics, n_groups, n_models).

    The unit is the width of a bar. The space between metrics is 1.5; the space between groups is
    0.35 if there are several models, and else 0.
    """
    gap = 0.35 if n_models > 1 else 0.0
    group = n_models + gap
    metric = n_groups * group - gap + 1.5
    return (
        np.arange(n_metrics)[:, None, None] * metric
        + np.arange(n_groups)[None, :, None] * group
        + np.arange(n_models)[None, None, :]
    )
