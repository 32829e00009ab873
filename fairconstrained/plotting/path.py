"""What fairness costs: accuracy against the gap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score
from sklearn.utils._optional_dependencies import check_matplotlib_support

from fairconstrained.metrics.distributions import weak_partial_demographic_parity_difference
from fairconstrained.model_selection.path import FairnessPath
from fairconstrained.model_selection.path_fitting import fairness_path
from fairconstrained.plotting.style import COLOURS, GREY, MARKERS, axes_for, legend_above, tidy
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import Array

_PATH_COLOUR = "#0072B2"
_PEERS = MARKERS[1:]


class FairnessPathDisplay:
    """Accuracy against the gap along a path of models, with other models beside it.

    Use :meth:`from_path`, :meth:`from_estimator` or :meth:`from_predictions`; the constructor only
    keeps its arguments. Up and to the left is better.

    Parameters
    ----------
    gaps : array-like of shape (n_points,)
        The gap of each model on the path.
    accuracies : array-like of shape (n_points,)
        Its accuracy.
    kappas : array-like of shape (n_points,) or None, default=None
        Its tolerance: the first and the last are written beside the path.
    unconstrained : tuple of float or None, default=None
        Gap and accuracy of the model without constraints.
    points : mapping of str to array-like or None, default=None
        Other models by name: (gap, accuracy), or several of them of shape (n, 2).
    gap_name, accuracy_name : str
        The labels of the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure.
    line_ : matplotlib Line2D
        The path.
    unconstrained_ : matplotlib Line2D or None
        The model without constraints.
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
    ('gap of the decisions', 'accuracy')
    >>> display.add_points("a peer", (0.03, 0.79)).points_["a peer"].get_xdata().tolist()
    [0.03]
    """

    def __init__(
        self,
        gaps: Any,
        accuracies: Any,
        *,
        kappas: ArrayLike | None = None,
        unconstrained: tuple[float, float] | None = None,
        points: Mapping[str, ArrayLike] | None = None,
        gap_name: str = "gap of the decisions",
        accuracy_name: str = "accuracy",
    ):
        self.gaps = gaps
        self.accuracies = accuracies
        self.kappas = kappas
        self.unconstrained = unconstrained
        self.points = points
        self.gap_name = gap_name
        self.accuracy_name = accuracy_name

    @classmethod
    def from_path(
        cls,
        path: FairnessPath,
        *,
        rows: str = "auto",
        unconstrained: tuple[float, float] | None = None,
        points: Mapping[str, ArrayLike] | None = None,
        ax: Any = None,
    ) -> FairnessPathDisplay:
        """Draw what :func:`~fairconstrained.fairness_path` returned.

        Parameters
        ----------
        path : FairnessPath
            The path.
        rows : {"auto", "training", "validation"}, default="auto"
            The rows that accuracy and the decisions' gap are measured on; "auto" takes those for
            validation if the path has any.
        unconstrained : tuple of float or None, default=None
            Gap and accuracy of the model without constraints.
        points : mapping of str to array-like or None, default=None
            Other models by name: (gap, accuracy), or several of them.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : FairnessPathDisplay
            With what was drawn.

        Raises
        ------
        ValueError
            If validation rows are wanted and the path has none.
        """
        display = cls._of(path, rows, points)
        display.unconstrained = unconstrained
        return display.plot(ax=ax)

    @classmethod
    def _of(cls, path: FairnessPath, rows: str, points: Any) -> FairnessPathDisplay:
        check_option("rows", rows, dict.fromkeys(("auto", "training", "validation"), ""))
        if rows == "validation" and not path.validation:
            raise ValueError(
                "rows='validation': the path was made without; pass X_val and y_val to it."
            )
        measured = path.validation if rows != "training" else {}
        where = "rows kept apart" if measured else "training rows"
        return cls(
            measured.get("val_decision_gap", path.decision_gaps),
            measured.get("val_accuracy", path.train_accuracy),
            kappas=path.kappas,
            points=points,
            gap_name=f"gap of the decisions, {where}",
            accuracy_name=f"accuracy, {where}",
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        rows: str = "auto",
        points: Mapping[str, ArrayLike] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> FairnessPathDisplay:
        """Fit a path of models and draw it.

        Parameters
        ----------
        estimator : FairLogisticClassifier or FairHingeClassifier
            What is fitted for every tolerance.
        X, y, sensitive_features
            The training rows, as for its `fit`.
        rows, points, ax
            See :meth:`from_path`.
        **options : dict
            Further arguments of :func:`~fairconstrained.fairness_path`, such as `n_kappas`, `X_val`
            and `y_val`. Unless `kappas` is among them, the path begins at the model without
            constraints, which is then marked.

        Returns
        -------
        display : FairnessPathDisplay
            With what was drawn.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        path = fairness_path(estimator, X, y, sensitive_features=sensitive_features, **options)
        display = cls._of(path, rows, points)
        if options.get("kappas") is None:
            display.unconstrained = float(display.gaps[0]), float(display.accuracies[0])
        return display.plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_preds: Mapping[Any, Any] | Sequence[Any],
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
        unconstrained: Any = None,
        gap: Callable[..., float] | None = None,
        accuracy: Callable[..., float] = accuracy_score,
        gap_name: str = "gap of the decisions",
        accuracy_name: str = "accuracy",
        points: Mapping[str, ArrayLike] | None = None,
        ax: Any = None,
    ) -> FairnessPathDisplay:
        """Draw the path of models whose decisions are given.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            The labels.
        y_preds : mapping of float to array-like, or sequence of array-like
            The decisions (or scores, for a `gap` of scores) of each model; by kappa, if a mapping.
        sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
            The groups.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The weights of the rows.
        unconstrained : array-like of shape (n_samples,) or None, default=None
            The decisions of the model without constraints.
        gap : callable or None, default=None
            ``gap(y_true, y_pred, sensitive_features=..., sample_weight=...)``, one of
            `fairconstrained.metrics` or of `fairlearn.metrics`; None is the gap of the selection
            rates.
        accuracy : callable, default=sklearn.metrics.accuracy_score
            ``accuracy(y_true, y_pred, sample_weight=...)``.
        gap_name, accuracy_name : str
            The labels of the axes.
        points : mapping of str to array-like or None, default=None
            Other models by name: (gap, accuracy), or several of them.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : FairnessPathDisplay
            With what was drawn.
        """
        measure = _selection_gap if gap is None else gap

        def place(y_pred: Any) -> tuple[float, float]:
            return (
                measure(
                    y_true,
                    y_pred,
                    sensitive_features=sensitive_features,
                    sample_weight=sample_weight,
                ),
                accuracy(y_true, y_pred, sample_weight=sample_weight),
            )

        kappas = list(y_preds) if isinstance(y_preds, Mapping) else None
        given = y_preds.values() if isinstance(y_preds, Mapping) else y_preds
        found = np.array([place(y_pred) for y_pred in given]).reshape(-1, 2)
        display = cls(
            found[:, 0],
            found[:, 1],
            kappas=kappas,
            unconstrained=None if unconstrained is None else place(unconstrained),
            points=points,
            gap_name=gap_name,
            accuracy_name=accuracy_name,
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None, line_kw: Mapping[str, Any] | None = None) -> Any:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        line_kw : mapping or None, default=None
            Further properties of the path's line, such as its label.

        Returns
        -------
        display : FairnessPathDisplay
            Itself.

        Raises
        ------
        ValueError
            If there is nothing to draw, or there is not one accuracy per gap.
        """
        gaps, accuracies, kappas = self._in_order()
        self.ax_ = axes_for(ax, f"{type(self).__name__}.plot")
        self.figure_ = self.ax_.figure
        tidy(self.ax_)
        style = {
            "color": _PATH_COLOUR, "marker": MARKERS[0], "markersize": 4.5, "linewidth": 1.6,
            "markeredgecolor": "white", "markeredgewidth": 0.5, "label": "fairconstrained",
            "zorder": 3.0,
        }  # fmt: skip
        (self.line_,) = self.ax_.plot(gaps, accuracies, **{**style, **(line_kw or {})})
        self.unconstrained_ = None
        if self.unconstrained is not None:
            (self.unconstrained_,) = self.ax_.plot(
                *([value] for value in self.unconstrained), linestyle="none", color="black",
                marker="*", markersize=12.0, markeredgecolor="white", zorder=4.0,
                label="unconstrained",
            )  # fmt: skip
        self._name_ends(gaps, accuracies, kappas)
        self.ax_.set(xlabel=self.gap_name, ylabel=self.accuracy_name)
        self.points_: dict[str, Any] = {}
        for name, points in (self.points or {}).items():
            self.add_points(name, points)
        self._fit()
        return self

    def add_points(self, name: str, points: ArrayLike, **kw: Any) -> FairnessPathDisplay:
        """Draw other models into the picture.

        Parameters
        ----------
        name : str
            What they are called in the legend.
        points : array-like of shape (2,) or (n, 2)
            (gap, accuracy) of one model, or of several, which are joined by a thin line.
        **kw : dict
            Properties of the line and its markers.

        Returns
        -------
        display : FairnessPathDisplay
            Itself.
        """
        if not isinstance(name, str):
            raise ValueError(f"name must be what the legend calls the points; got {name!r}.")
        places = np.asarray(points, dtype=float)
        if places.shape != (2,) and (places.ndim != 2 or places.shape[1] != 2):
            raise ValueError(
                f"points of {name!r} must be (gap, accuracy) or several of these, of shape (n, 2); "
                f"got shape {places.shape}."
            )
        places = places.reshape(-1, 2)
        places = places[np.argsort(places[:, 0], kind="stable")]
        i = len(self.points_)
        style = {
            "color": COLOURS[1 + i % (len(COLOURS) - 1)], "marker": _PEERS[i % len(_PEERS)],
            "linestyle": ("--", "-.", ":")[i % 3], "linewidth": 1.0, "markersize": 7.0,
            "markeredgecolor": "white", "markeredgewidth": 0.6, "zorder": 3.5, "label": name,
        }  # fmt: skip
        (self.points_[name],) = self.ax_.plot(*places.T, **{**style, **kw})
        self._fit()
        return self

    def _in_order(self) -> tuple[Array, Array, Array | None]:
        """Return the path from the smallest tolerance to the largest: by gaps without any."""
        gaps = np.atleast_1d(np.asarray(self.gaps, dtype=float))
        accuracies = np.atleast_1d(np.asarray(self.accuracies, dtype=float))
        kappas = None if self.kappas is None else np.asarray(self.kappas, dtype=float)
        sizes = {len(gaps), len(accuracies), *([] if kappas is None else [len(kappas)])}
        if len(sizes) != 1 or 0 in sizes:
            raise ValueError(
                f"FairnessPathDisplay needs a gap and an accuracy for every model; got {len(gaps)} "
                f"gaps and {len(accuracies)} accuracies"
                + ("." if kappas is None else f" for {len(kappas)} kappas.")
            )
        order = np.argsort(gaps if kappas is None else kappas, kind="stable")
        return gaps[order], accuracies[order], None if kappas is None else kappas[order]

    def _fit(self) -> None:
        """Make room for all points, none of it for gaps below zero, and name everything."""
        self.ax_.autoscale(True)
        self.ax_.autoscale_view()
        left, right = self.ax_.get_xlim()
        least = min(float(np.min(line.get_xdata())) for line in self.ax_.lines)
        if left < 0.0 <= least:
            self.ax_.set_xlim(left=-0.008 * right)
        legend_above(self.ax_)

    def _name_ends(self, gaps: Array, accuracies: Array, kappas: Array | None) -> None:
        """Write kappa beside both ends of the path."""
        if kappas is None:
            return
        self.ax_.margins(0.12, 0.08)
        for i in {0, len(kappas) - 1}:  # to the right and below, where worse models would be
            self.ax_.annotate(
                f"κ = {kappas[i]:.2g}", (gaps[i], accuracies[i]), (6.0, -3.0),
                textcoords="offset points", fontsize="small", color=GREY, ha="left", va="top",
                zorder=5.0,
            )  # fmt: skip


def _selection_gap(y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any) -> Any:
    """Return the gap of the selection rates."""
    values = np.unique(np.concatenate([np.asarray(y_true), np.asarray(y_pred)]))
    return weak_partial_demographic_parity_difference(
        y_true,
        np.asarray(y_pred) == values[-1],
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        threshold=0.5,
    )
