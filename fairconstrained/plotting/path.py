"""Plots of accuracy against the gap along a fairness path."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.pipeline import Pipeline
from sklearn.utils._optional_dependencies import check_matplotlib_support

from fairconstrained.constraints import resolve_constraints
from fairconstrained.estimators.base import FairEstimator
from fairconstrained.metrics.intervals import clopper_pearson
from fairconstrained.metrics.rates import rate_gaps
from fairconstrained.model_selection import FairnessPath, fairness_path
from fairconstrained.plotting import style
from fairconstrained.plotting.style import Annotation, Axes, Line2D, checked
from fairconstrained.utils.arguments import check_confidence, check_finite, check_option, is_number
from fairconstrained.utils.arrays import ArrayLike, MatrixLike
from fairconstrained.utils.meta_estimators import final_estimator

_QUALITIES = {"accuracy": "accuracy", "ndcg": "NDCG@10"}  # names in a path, and in the picture
_MARKS: dict[str, dict[str, Any]] = {
    "chosen": {
        "color": style.COLOURS[1], "marker": "o", "markersize": 11.0, "markerfacecolor": "none",
        "markeredgewidth": 2.0,
    },
    "unconstrained": {
        "color": "black", "marker": "*", "markersize": 12.0, "markeredgecolor": "white",
    },
}  # fmt: skip


@dataclass(eq=False, repr=False)
class FairnessPathDisplay(style.AxesDisplay):
    """Accuracy against the gap along a fairness path, with other models for comparison.

    On validation rows a band shows the confidence intervals of the accuracies (Clopper-Pearson):
    smaller differences may be due to chance. The unconstrained and the chosen model are marked, and
    labelled in the margin.

    Create it with :meth:`from_path`, :meth:`from_estimator` or :meth:`from_predictions`. The
    constructor only stores its arguments. Better models are higher and further to the left.

    Parameters
    ----------
    gaps : array-like of shape (n_points,)
        The gaps of the models on the path.
    accuracies : array-like of shape (n_points,)
        The accuracies of the models on the path.
    kappas : array-like of shape (n_points,) or None, default=None
        The tolerances of the models. The plot shows the first and the last one.
    unconstrained : tuple of float or None, default=None
        The gap and the accuracy of the unconstrained model.
    points : mapping of str to array-like or None, default=None
        Other models by name: a pair (gap, accuracy), or an array of pairs of shape (n, 2).
    noise : array-like of shape (n_points, 2) or None, default=None
        Intervals of the accuracies, drawn as a band.
    chosen : int or None, default=None
        The position of the chosen model, which is marked.
    gap_name, accuracy_name, noise_name : str
        The labels of axes and band.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, matplotlib Figure
        The axes and the figure.
    line_ : matplotlib Line2D
        The line of the path.
    unconstrained_, chosen_ : matplotlib Line2D or None
        The points of the unconstrained and of the chosen model.
    band_ : matplotlib PolyCollection or None
        The band of the confidence intervals.
    points_ : dict of str to matplotlib Line2D
        The other models.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from fairconstrained.plotting import FairnessPathDisplay
    >>> display = FairnessPathDisplay(
    ...     [0.01, 0.05, 0.12], [0.78, 0.82, 0.84], unconstrained=(0.2, 0.85)
    ... ).plot()
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('gap of the predictions', 'accuracy')
    """

    gaps: ArrayLike
    accuracies: ArrayLike
    _: KW_ONLY
    kappas: ArrayLike | None = None
    unconstrained: tuple[float, float] | None = None
    points: Mapping[str, ArrayLike] | None = None
    noise: ArrayLike | None = None
    chosen: int | None = None
    gap_name: str = "gap of the predictions"
    accuracy_name: str = "accuracy"
    noise_name: str = "confidence interval of the accuracy"

    @classmethod
    def from_path(
        cls,
        path: FairnessPath,
        *,
        rows: str = "auto",
        unconstrained: tuple[float, float] | None = None,
        points: Mapping[str, ArrayLike] | None = None,
        chosen: float | None = None,
        confidence: float | None = 0.95,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the result of :func:`~fairconstrained.fairness_path`.

        Parameters
        ----------
        path : FairnessPath
            The path.
        rows : {"auto", "training", "validation", "objective"}, default="auto"
            The rows on which accuracy and the gap of the predictions are measured; "auto" takes the
            validation rows if the path has any. "objective" draws the training objective against
            the gap on scores, for a path with ``bound=True``: no model is below the band.
        unconstrained, points
            See :class:`FairnessPathDisplay`.
        chosen : float or None, default=None
            The model with the tolerance that is nearest to this one is marked.
        confidence : float or None, default=0.95
            That of the band; None draws none.
        ax : matplotlib Axes or None, default=None
            The axes to draw on; None creates a new figure.
        """
        measures, nearest = _measures_of(path, rows, confidence), None
        if chosen is not None:
            nearest = int(np.argmin(np.abs(path.kappas - check_finite("chosen", chosen))))
        display = cls(**measures, unconstrained=unconstrained, points=points, chosen=nearest)
        return display.plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: FairEstimator | Pipeline,
        X: MatrixLike,
        y: ArrayLike,
        *,
        sensitive_features: MatrixLike | None = None,
        rows: str = "auto",
        points: Mapping[str, ArrayLike] | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Fit a fairness path and plot it.

        Parameters
        ----------
        estimator : estimator or Pipeline
            The estimator of this library to fit for each tolerance, or a pipeline that ends in one.
        X, y, sensitive_features
            The training data, as for its `fit`.
        rows, points, ax
            See :meth:`from_path`.
        **options : dict
            Additional arguments of :func:`~fairconstrained.fairness_path`, such as `n_kappas`,
            `X_val` and `y_val`. The path starts at the unconstrained model, which is then marked,
            unless `kappas` is given or a constraint has a tolerance of its own.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        path = fairness_path(estimator, X, y, sensitive_features=sensitive_features, **options)
        constraints, free = resolve_constraints(final_estimator(estimator).constraint), None
        if options.get("kappas") is None and all(each.takes_kappa for each in constraints):
            measures = _measures_of(path, rows, None)
            free = float(measures["gaps"][0]), float(measures["accuracies"][0])
        return cls.from_path(path, rows=rows, unconstrained=free, points=points, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_preds: Mapping[float, ArrayLike] | Sequence[ArrayLike],
        *,
        sensitive_features: MatrixLike,
        sample_weight: ArrayLike | None = None,
        unconstrained: ArrayLike | None = None,
        gap: Callable[..., float] | None = None,
        accuracy: Callable[..., float] = accuracy_score,
        gap_name: str = "gap of the predictions",
        accuracy_name: str = "accuracy",
        points: Mapping[str, ArrayLike] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the path of models with given predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            The labels.
        y_preds : mapping of float to array-like, or sequence of array-like
            The predictions of each model, or the scores if `gap` is a metric of scores. The keys of
            a mapping are the values of kappa.
        sensitive_features, sample_weight
            The groups and the sample weights, as for the metrics.
        unconstrained : array-like of shape (n_samples,) or None, default=None
            The predictions of the unconstrained model.
        gap : callable or None, default=None
            A metric of `fairconstrained.metrics` or of `fairlearn.metrics`, called as
            ``gap(y_true, y_pred, sensitive_features=..., sample_weight=...)``; None means the gap
            of the selection rates.
        accuracy : callable, default=sklearn.metrics.accuracy_score
            The metric on the vertical axis, called as
            ``accuracy(y_true, y_pred, sample_weight=...)``.
        gap_name, accuracy_name, points, ax
            See :class:`FairnessPathDisplay` and :meth:`from_path`.
        """
        weight: dict[str, Any] = {"sample_weight": sample_weight}
        rows = weight | {"sensitive_features": sensitive_features}

        def evaluate(y_pred: ArrayLike) -> tuple[float, float]:
            if gap is None:
                distance = float(rate_gaps(y_true, y_pred, **rows)["gap"].iloc[0])
            else:
                distance = gap(y_true, y_pred, **rows)
            return distance, accuracy(y_true, y_pred, **weight)

        kappas = list(y_preds) if isinstance(y_preds, Mapping) else None
        given = y_preds.values() if isinstance(y_preds, Mapping) else y_preds
        measures = np.array([evaluate(y_pred) for y_pred in given]).reshape(-1, 2)
        free = None if unconstrained is None else evaluate(unconstrained)
        names: dict[str, Any] = {"gap_name": gap_name, "accuracy_name": accuracy_name}
        display = cls(*measures.T, kappas=kappas, unconstrained=free, points=points, **names)
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None, line_kw: Mapping[str, object] | None = None) -> Self:
        """Draw the path on axes, those of a new figure if None, and return the display.

        `line_kw` are additional properties of the line of the path, such as its label.
        """
        gaps = checked("gaps", self.gaps, (None,), "finite numbers, one for each model")
        n, numbers = len(gaps), f"{len(gaps)} finite numbers, as many as gaps"
        accuracies = checked("accuracies", self.accuracies, (n,), numbers)
        kappas = None if self.kappas is None else checked("kappas", self.kappas, (n,), numbers)
        order = np.argsort(gaps if kappas is None else kappas, kind="stable")
        if not isinstance(self.points, Mapping | None):
            raise TypeError(
                "points must be a mapping from names to pairs (gap, accuracy), or None; got "
                f"{self.points!r}."
            )
        self._start(ax)
        look = style.mark(0) | {
            "markersize": 4.5, "linewidth": 1.6, "markeredgecolor": "white",
            "markeredgewidth": 0.5, "label": "fairconstrained", "zorder": 3.0,
        }  # fmt: skip
        (self.line_,) = self.ax_.plot(gaps[order], accuracies[order], **{**look, **(line_kw or {})})
        self.band_ = None
        if self.noise is not None:
            what = f"a lower and an upper end for each of the {n} models"
            ends = checked("noise", self.noise, (n, 2), what)
            by_gap = np.argsort(gaps, kind="stable")
            self.band_ = self.ax_.fill_between(
                gaps[by_gap], *ends[by_gap].T, color=style.COLOURS[0], alpha=0.13, linewidth=0.0,
                zorder=1.0, label=self.noise_name,
            )  # fmt: skip
        self._labels: list[tuple[str, float, float]] = []
        self._texts: list[Annotation] = []
        self.chosen_ = self.unconstrained_ = None
        if kappas is not None:
            for i in dict.fromkeys(order[[0, -1]].tolist()):
                self._labels.append((f"κ = {kappas[i]:.2g}", gaps[i], accuracies[i]))
        i = self.chosen
        if i is not None:
            if not is_number(i, Integral) or not 0 <= i < n:
                raise ValueError(
                    f"chosen must be the position of a model, 0 to {n - 1}; got {i!r}."
                )
            text = "chosen" if kappas is None else f"chosen, κ = {kappas[i]:.2g}"
            self.chosen_ = self._mark("chosen", text, gaps[i], accuracies[i])
        if self.unconstrained is not None:
            what = "two finite numbers, (gap, accuracy)"
            place = checked("unconstrained", self.unconstrained, (2,), what)
            self.unconstrained_ = self._mark("unconstrained", "unconstrained", *place)
        self.ax_.set(xlabel=self.gap_name, ylabel=self.accuracy_name)
        self.points_: dict[str, Line2D] = {}
        for name, points in (self.points or {}).items():
            self.add_points(name, points)
        self._set_limits()
        return self

    def add_points(self, name: str, points: ArrayLike, **kw: Any) -> Self:
        """Add other models to the plot.

        Parameters
        ----------
        name : str
            Their name in the legend.
        points : array-like of shape (2,) or (n, 2)
            A pair (gap, accuracy), or several pairs, which are joined by a thin line.
        **kw : dict
            Additional properties of the line and its markers.
        """
        if not isinstance(name, str):
            raise ValueError(f"name must be a string, the name in the legend; got {name!r}.")
        what = "a pair (gap, accuracy), or pairs of shape (n, 2)"
        places = checked(f"points of {name!r}", points, (None, 2), what)
        places = places[np.argsort(places[:, 0], kind="stable")]
        i = len(self.points_)
        look = {
            "color": style.COLOURS[1 + i % (len(style.COLOURS) - 1)],
            "marker": style.MARKERS[1 + i % (len(style.MARKERS) - 1)], "zorder": 3.5,
            "linestyle": ("--", "-.", ":")[i % 3], "linewidth": 1.0, "markersize": 7.0,
            "markeredgecolor": "white", "markeredgewidth": 0.6, "label": style.plain_text(name),
        }  # fmt: skip
        (self.points_[name],) = self.ax_.plot(*places.T, **{**look, **kw})
        self._set_limits()
        return self

    def _mark(self, kind: str, text: str, x: float, y: float) -> Line2D:
        """Mark the point of a model, which is labelled in the margin and not in the legend."""
        self._labels.append((text, x, y))
        (mark,) = self.ax_.plot(
            [x], [y], linestyle="none", zorder=4.0, label=f"_{kind}", **_MARKS[kind]
        )
        return mark

    def _set_limits(self) -> None:
        """Fit the axes to all points, without space for negative gaps, and draw the legend."""
        self.ax_.autoscale(True)
        self.ax_.autoscale_view()
        left, right = self.ax_.get_xlim()
        if left < 0.0 <= min(np.min(line.get_xdata()) for line in self.ax_.lines):
            self.ax_.set_xlim(left=-0.008 * right)
        for text in self._texts:
            text.remove()
        self._texts = style.labels_in_margin(self.ax_, self._labels)
        style.legend_above(self.ax_)


def _measures_of(path: FairnessPath, rows: str, confidence: float | None) -> dict[str, Any]:
    """Return measures, axis labels and intervals, which only shares of validation rows have."""
    if not isinstance(path, FairnessPath):
        raise TypeError(f"path must be the FairnessPath of fairness_path; got {path!r}.")
    check_option("rows", rows, ("auto", "training", "validation", "objective"))
    if rows == "objective":
        if np.isnan(path.objective_bounds).any():
            raise ValueError("rows='objective' needs bounds: fairness_path(..., bound=True).")
        band = np.column_stack([path.objective_bounds, path.objectives])
        return {
            "gaps": path.gaps, "accuracies": path.objectives, "kappas": path.kappas, "noise": band,
            "gap_name": "gap on scores, training rows", "accuracy_name": "training objective",
            "noise_name": "no model is below this band",
        }  # fmt: skip
    if rows == "validation" and not path.validation:
        raise ValueError("rows='validation': the path has none; pass X_val and y_val to it.")
    measured = path.validation if rows != "training" else {}
    where = "validation rows" if measured else "training rows"
    accuracies, noise = measured.get(f"val_{path.quality}", path.train_quality), None
    if confidence is not None and measured and path.quality == "accuracy":
        sizes = np.full(len(accuracies), path.validation_size)
        limits = clopper_pearson(accuracies, sizes, check_confidence(confidence))
        noise = np.column_stack([limits.low, limits.high])
    return {
        "gaps": measured.get("val_decision_gap", path.decision_gaps),
        "accuracies": accuracies,
        "kappas": path.kappas,
        "noise": noise,
        "gap_name": f"gap of the predictions, {where}",
        "accuracy_name": f"{_QUALITIES[path.quality]}, {where}",
    }
