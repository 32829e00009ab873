"""What decisions do in every group, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.data.alignment import check_same_rows
from fairconstrained.inspection.scores import check_two_classes, groups_of
from fairconstrained.metrics.rates import DEFAULT_RATES, RATES, Decisions
from fairconstrained.plotting.style import COLOURS, GREY, HATCHES, axes_for, legend_above, tidy
from fairconstrained.utils.meta_estimators import best_estimator
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_confidence

_WIDTH_OF_BAR = 0.26  # inches
_PALE = 0.35  # how strong the colours of the first model are; the last has full ones


class GroupMetricsDisplay:
    """Bars of the groups' rates, with confidence intervals: one model, or several side by side.

    Use :meth:`from_estimator` or :meth:`from_predictions`; the constructor only keeps its
    arguments. The rates are those of :func:`~fairconstrained.metrics.group_rates`.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        For every model a row per group, and for every metric its column and those with ``_low`` and
        ``_high``.
    metrics : sequence of str
        Which columns are drawn.
    confidence : float or None, default=0.95
        Of the intervals; None draws none.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure.
    bars_ : dict of (str, str) to matplotlib BarContainer
        For every model and group its bars, one per metric.
    errorbars_ : dict of (str, str) to matplotlib ErrorbarContainer
        Their intervals.

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
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        metrics: Sequence[str] = DEFAULT_RATES,
        confidence: float | None = 0.95,
        ax: Any = None,
    ) -> GroupMetricsDisplay:
        """Draw what the decisions of fitted classifiers do.

        Parameters
        ----------
        estimator : classifier or mapping of str to classifier
            Fitted, of two classes: any classifier, pipeline or search; or several by name, such as
            ``{"before": ..., "after": ...}``.
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The labels.
        sensitive_features : array-like, DataFrame or None, default=None
            The groups; None takes them from the (last) classifier's `sensitive_columns`.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The weights of the rows.
        metrics : sequence of str, default=("selection_rate", "true_positive_rate", \
                "false_positive_rate", "accuracy")
            Of these, "error_rate", "precision" and "base_rate".
        confidence : float or None, default=0.95
            Of the intervals, each on its own (Clopper-Pearson); None draws none.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : GroupMetricsDisplay
            With what was drawn.
        """
        check_same_rows(
            test=True, X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight
        )
        models = estimator if isinstance(estimator, Mapping) else {"": estimator}
        if not models:
            raise ValueError("GroupMetricsDisplay: there are no models to draw.")
        for model in models.values():
            check_two_classes(best_estimator(model))
        last = list(models.values())[-1]
        predictions = {name: best_estimator(model).predict(X) for name, model in models.items()}
        return cls.from_predictions(
            y,
            predictions,
            sensitive_features=groups_of(last, X, sensitive_features),
            sample_weight=sample_weight,
            metrics=metrics,
            confidence=confidence,
            pos_label=best_estimator(last).classes_[1],
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
        metrics: Sequence[str] = DEFAULT_RATES,
        confidence: float | None = 0.95,
        pos_label: Any = None,
        ax: Any = None,
    ) -> GroupMetricsDisplay:
        """Draw what given decisions do.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            The labels.
        y_pred : array-like of shape (n_samples,) or mapping of str to array-like
            The decisions; or those of several models by name.
        sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
            The groups.
        sample_weight, metrics, confidence, ax
            See :meth:`from_estimator`.
        pos_label : label or None, default=None
            The positive class; None takes the second one in sorted order.

        Returns
        -------
        display : GroupMetricsDisplay
            With what was drawn.
        """
        models = y_pred if isinstance(y_pred, Mapping) else {"": y_pred}
        for metric in metrics:
            check_option("metrics", metric, dict.fromkeys(RATES, ""))
        level = 0.95 if confidence is None else check_confidence(confidence)
        tables = {
            name: Decisions.check(
                y_true, decisions, sensitive_features, sample_weight, pos_label
            ).table(metrics, level).iloc[:-1]
            for name, decisions in models.items()
        }  # fmt: skip
        return cls(tables, metrics=tuple(metrics), confidence=confidence).plot(ax=ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """The size of a figure for it, in inches: the wider the more bars there are."""
        n_groups = len(next(iter(self.tables.values())))
        places = _places(len(self.metrics), n_groups, len(self.tables))
        return float(np.clip(_WIDTH_OF_BAR * (places.max() + 2.5) + 1.0, 5.2, 14.0)), 3.9

    def plot(self, *, ax: Any = None) -> GroupMetricsDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure, the wider the more bars there are.

        Returns
        -------
        display : GroupMetricsDisplay
            Itself.
        """
        if not self.tables or not self.metrics:
            raise ValueError("GroupMetricsDisplay: there are no models or no metrics to draw.")
        groups = list(next(iter(self.tables.values())).index)
        places = _places(len(self.metrics), len(groups), len(self.tables))
        self.ax_ = axes_for(ax, f"{type(self).__name__}.plot", figsize=self.figsize)
        self.figure_ = self.ax_.figure
        tidy(self.ax_)
        self.ax_.grid(False, axis="x")
        self.bars_: dict[tuple[str, str], Any] = {}
        self.errorbars_: dict[tuple[str, str], Any] = {}
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

    def _draw(self, x: Any, model: str, rates: pd.Series, k: int, m: int) -> None:
        """Draw the bars of one group and model."""
        values = rates[list(self.metrics)].to_numpy(dtype=float)
        group = str(rates.name)
        self.bars_[model, group] = self.ax_.bar(
            x, np.nan_to_num(values), width=0.92, **self._look(k, m), zorder=2.0
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

    def _look(self, k: int, m: int) -> dict[str, Any]:
        """Return how the bars of group k and model m look: hue and hatch, and how pale."""
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
        """Name groups and models above the bars; rates go from 0 to 1."""
        from matplotlib.patches import Patch

        self.ax_.set_ylim(0.0, 1.0)
        last = len(self.tables) - 1
        handles = [Patch(label=name, **self._look(k, last)) for k, name in enumerate(groups)]
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
    """Return how strong the colours of a model are: the first pale, the last full."""
    return 1.0 if n_models == 1 else _PALE + (1.0 - _PALE) * m / (n_models - 1)


def _places(n_metrics: int, n_groups: int, n_models: int) -> Array:
    """Return where bars stand, (n_metrics, n_groups, n_models).

    A bar is one wide; half a bar is between groups where there are several models, one and a half
    between metrics.
    """
    gap = 0.35 if n_models > 1 else 0.0
    group = n_models + gap
    metric = n_groups * group - gap + 1.5
    return (
        np.arange(n_metrics)[:, None, None] * metric
        + np.arange(n_groups)[None, :, None] * group
        + np.arange(n_models)[None, None, :]
    )
