"""Plots of the rates of predictions by group, for one or several models."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from fairconstrained.data.groups import Groups
from fairconstrained.inspection.collected import Collected, collect, collect_predictions
from fairconstrained.inspection.shown import RateDots
from fairconstrained.metrics.rates import DEFAULT_RATES, RATES
from fairconstrained.plotting import style
from fairconstrained.plotting.style import Axes, Line2D, LineCollection
from fairconstrained.utils.arguments import check_confidence, check_option
from fairconstrained.utils.arrays import Array, ArrayLike, Classifier, MatrixLike

_ROW, _MODEL, _LINE = 0.09, 0.13, 0.17  # inches: of a row, of each model and line of text in it
_NAME_WIDTH = 26  # characters of a group's name in a line


@dataclass(eq=False, repr=False)
class GroupMetricsDisplay(style.AxesDisplay):
    """Rates by group as rows of dots with confidence intervals, for one model or several.

    There is a block of rows for each metric, a row for each group, and in it a dot for each model.
    Groups are sorted by the first metric of the last model; their numbers of rows are on the right.
    Of more than eight groups, those with extreme rates and the largest are shown; a grey bar spans
    the rates of the others.

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
    ax_, figure_ : matplotlib Axes, matplotlib Figure
        The axes and the figure.
    dots_ : dict of (str, str) to matplotlib Line2D
        The dots of each model and shown group, one for each metric.
    intervals_ : dict of (str, str) to matplotlib LineCollection
        The confidence intervals of the dots; empty without intervals.
    spans_ : matplotlib LineCollection or None
        The bars of the groups that are not shown, one for each metric.

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

    tables: Mapping[str, pd.DataFrame]
    _: KW_ONLY
    metrics: Sequence[str] = DEFAULT_RATES
    confidence: float | None = 0.95

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier | Mapping[str, Classifier],
        X: MatrixLike,
        y: ArrayLike | None,
        *,
        sensitive_features: MatrixLike | None = None,
        sample_weight: ArrayLike | None = None,
        metrics: Sequence[str] = DEFAULT_RATES,
        confidence: float | None = 0.95,
        pos_label: object = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the rates of fitted classifiers.

        Parameters
        ----------
        estimator : classifier or mapping of str to classifier
            A fitted classifier, a pipeline or a search; or several by name, for example
            ``{"before": ..., "after": ...}``.
        X, sample_weight, ax
            See :meth:`ScoreDensityDisplay.from_estimator`.
        y : array-like of shape (n_samples,) or None
            The labels; not needed for the selection rate.
        sensitive_features : array-like, DataFrame or None, default=None
            The groups; None reads them from the `sensitive_columns` of the (last) classifier.
        metrics : sequence of str, optional
            Metrics among "selection_rate", "true_positive_rate", "false_positive_rate", "accuracy",
            "error_rate", "precision" and "base_rate". The default is the first four.
        confidence : float or None, default=0.95
            The confidence level of each single interval (Clopper-Pearson); None draws no intervals.
        pos_label : label or None, default=None
            The positive class; None means the favourable class of the classifiers. With
            several classes it is the one that is compared with all others.
        """
        rows = collect(estimator, X, y, sensitive_features, sample_weight)
        return cls._of(rows.against_rest(pos_label), metrics, confidence).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | None,
        y_pred: ArrayLike | Mapping[str, ArrayLike],
        *,
        sensitive_features: MatrixLike | Groups,
        sample_weight: ArrayLike | None = None,
        metrics: Sequence[str] = DEFAULT_RATES,
        confidence: float | None = 0.95,
        pos_label: object = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the rates of given predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            The labels; not needed for the selection rate.
        y_pred : array-like of shape (n_samples,) or mapping of str to array-like
            The predictions of a model, or those of several models by name.
        sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
            The groups.
        sample_weight, metrics, confidence, ax
            See :meth:`from_estimator`.
        pos_label : label or None, default=None
            The positive class; None means the second of the sorted classes.
        """
        rows = collect_predictions(y_true, y_pred, None, sensitive_features, sample_weight)
        return cls._of(rows.against_rest(pos_label), metrics, confidence).plot(ax=ax)

    @classmethod
    def _of(cls, rows: Collected, metrics: Sequence[str], confidence: float | None) -> Self:
        """Return the display, not drawn."""
        if isinstance(metrics, str) or not isinstance(metrics, Sequence):
            raise TypeError(
                f"metrics must be a list of names, such as {list(DEFAULT_RATES)}; got {metrics!r}."
            )
        for metric in metrics:
            check_option("metrics", metric, RATES)
            if rows.labels is None and RATES[metric].needs_labels:
                raise ValueError(f"y is None, and the metric {metric} needs the labels: pass y.")
        level = 0.95 if confidence is None else check_confidence(confidence)
        tables = {  # with marginal groups there is a part for each attribute
            name: pd.concat(part.rates(metrics, level).iloc[:-1] for part in rows.predictions(name))
            for name in rows.outputs
        }
        return cls(tables, metrics=tuple(metrics), confidence=confidence)

    @property
    def figsize(self) -> tuple[float, float]:
        """The size of the figure in inches; the height depends on the number of rows."""
        first = self._rates[0]
        lines = [style.plain_text(row.name, _NAME_WIDTH).count("\n") + 1 for row in first.shown]
        dots = _ROW + _MODEL * len(self.tables)
        row = max(dots, _LINE * max(lines))
        titles = (0.32 + 1.7 * (row - dots)) * len(self.metrics) if len(self.metrics) > 1 else 0.0
        return 6.4, float(1.3 + first.choice.n_rows * len(self.metrics) * row + titles)

    @property
    def _rates(self) -> list[RateDots]:
        """The rates, with the groups chosen and sorted by the first metric of the last model."""
        tables = list(self.tables.values())
        choice = RateDots(tables, self.metrics[0]).choice
        return [RateDots(tables, metric, choice) for metric in self.metrics]

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the dots on axes, those of a new figure if None, and return the display."""
        if not self.tables or not self.metrics:
            raise ValueError("GroupMetricsDisplay: there are no models or no metrics to plot.")
        self._start(ax, self.figsize)
        self.ax_.grid(False, axis="y")
        rates, n_models = self._rates, len(self.tables)
        # From the top down in units of a row; each block has a heading above, if there are several.
        n_rows = rates[0].choice.n_rows
        block = n_rows + (1.7 if len(self.metrics) > 1 else 0.0)
        places = np.arange(len(self.metrics))[:, None] * block + np.arange(n_rows)[None, :]
        self.dots_: dict[tuple[str, str], Line2D] = {}
        self.intervals_: dict[tuple[str, str], LineCollection] = {}
        self.spans_: LineCollection | None = None
        for m, model in enumerate(self.tables):
            shift, look = 0.72 * ((m + 0.5) / n_models - 0.5), _style(m, n_models)
            for k, row in enumerate(rates[0].shown):
                dots = [(d.value, d.low, d.high) for d in (rate.shown[k].dots[m] for rate in rates)]
                y, key = places[:, k] + shift, (model, row.name)
                values, left, right = np.array(dots).T
                left = np.where(np.isnan(values), np.nan, left)  # without rows it is 0
                (self.dots_[key],) = self.ax_.plot(values, y, zorder=3.0, clip_on=False, **look)
                if self.confidence is not None:
                    self.intervals_[key] = self._bars(
                        y, left, right, color=look["color"], linewidth=2.2, alpha=0.6,
                        zorder=2.0, clip_on=False,
                    )  # fmt: skip
        if rates[0].others is not None:
            spans = np.array([rate.others.others for rate in rates if rate.others is not None]).T
            self.spans_ = self._bars(places[:, -1], *spans, color="0.8", linewidth=7.0, zorder=1.5)
        self._label_rows(rates, places)
        self.ax_.margins(x=0.04)
        low, high = self.ax_.get_xlim()
        self.ax_.set_xlim(max(low, -0.02), min(high, 1.02))
        self.ax_.set_xlabel(RATES[self.metrics[0]].title if len(self.metrics) == 1 else "rate")
        self._legend()
        return self

    def _bars(self, y: Array, low: Array, high: Array, **look: Any) -> LineCollection:
        """Draw horizontal bars where their ends are known."""
        known = np.isfinite(low)
        return self.ax_.hlines(y[known], low[known], high[known], **look)

    def _label_rows(self, rates: list[RateDots], places: Array) -> None:
        """Write the groups on the left, with the metrics as headings, and sizes on the right."""
        every = [[*rate.shown, *([] if rate.others is None else [rate.others])] for rate in rates]
        names = [style.plain_text(row.name, _NAME_WIDTH) for row in every[0]]
        heads = places[:, 0] - 1.0 if len(rates) > 1 else np.empty(0)
        titles = [RATES[name].title for name in self.metrics[: len(heads)]]
        self.ax_.set_yticks([*places.ravel(), *heads], names * len(rates) + titles)
        for label in self.ax_.get_yticklabels()[places.size :]:
            label.set_fontweight("bold")
        self.ax_.tick_params(axis="y", length=0.0)
        above = 1.6 if len(rates) > 1 else 0.6
        self.ax_.set_ylim(places.max() + 0.6, places.min() - above)
        if not {"rows", "positive_decisions"} <= set(next(iter(self.tables.values()))):
            return
        right = self.ax_.secondary_yaxis("right")
        sizes = [list(row.sizes) for rows in every for row in rows]
        texts = [" / ".join(map(str, n if len(set(n)) > 1 else n[:1])) for n in sizes]
        right.set_yticks(places.ravel(), [f"n = {n}" for n in texts])
        right.tick_params(axis="y", length=0.0, labelsize="small", labelcolor=style.GREY)
        right.spines["right"].set_visible(False)

    def _legend(self) -> None:
        """Draw the legend above the axes."""
        from matplotlib import lines

        n = len(self.tables)
        names = [style.plain_text(name) for name in self.tables] if n > 1 else []
        looks = [_style(m, n) | {"label": name} for m, name in enumerate(names)]
        if self.confidence is not None:
            label = f"{100.0 * self.confidence:g}% confidence interval"
            looks.append({"color": "0.45", "linewidth": 2.2, "alpha": 0.6, "label": label})
        if self.spans_ is not None:
            looks.append({"color": "0.8", "linewidth": 7.0, "label": "range of the others"})
        style.legend_above(self.ax_, [lines.Line2D([], [], **look) for look in looks])


def _style(m: int, n_models: int) -> dict[str, Any]:
    """Return colour and marker of a model; the first of several models is grey and hollow."""
    if n_models > 1 and m == 0:
        return {
            "color": style.GREY, "marker": "o", "markersize": 6.0, "markerfacecolor": "white",
            "markeredgewidth": 1.4, "linestyle": "none",
        }  # fmt: skip
    look = {"markersize": 6.5, "markeredgecolor": "white", "markeredgewidth": 0.5}
    return style.mark(max(m - 1, 0)) | look | {"linestyle": "none"}
