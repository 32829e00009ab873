"""The rate of one group against another's, over all thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairconstrained.inspection.scores import Scored, ranks_of
from fairconstrained.metrics.rates import RATES, group_labels, positive_class
from fairconstrained.plotting.style import GREY, MARKERS, axes_for, legend_above, look, tidy
from fairconstrained.utils.registry import check_option
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_ranks

_POINTS = 500  # on each axis: more than are seen
_RATES = ("selection_rate", "true_positive_rate", "false_positive_rate")


@dataclass(frozen=True, eq=False)
class Curve:
    """Two groups' rates at all thresholds.

    Parameters
    ----------
    x, y : ndarray of shape (n_points,)
        The reference's rates and the other group's, from (0, 0) to (1, 1).
    decided : tuple of float
        The two rates of the decisions.
    """

    x: Array
    y: Array
    decided: tuple[float, float]


class GroupRateDisplay:
    r"""The rate of positive decisions in one group against another's, over all thresholds.

    Each point of a curve is a threshold :math:`\theta`: :math:`\Pr(s > \theta \mid a)` to the
    right, :math:`\Pr(s > \theta \mid b)` upwards. On the diagonal the groups are treated alike; the
    largest vertical distance from it is
    :func:`~fairconstrained.metrics.roc_parity_difference`. A range of ranks is a square: partial
    demographic parity is about the curve inside it.

    Use :meth:`from_estimator` or :meth:`from_predictions`; the constructor only keeps its
    arguments.

    Parameters
    ----------
    curves : mapping of str to Curve
        The groups other than the reference.
    reference : str
        The group on the horizontal axis.
    rate : {"selection_rate", "true_positive_rate", "false_positive_rate"}, \
            default="selection_rate"
        Which rate.
    ranks : tuple of float or None, default=None
        The range of ranks that is marked.
    kappa : float or None, default=None
        The gap that is marked along the diagonal.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure.
    lines_ : dict of str to matplotlib Line2D
        The curves.
    points_ : dict of str to matplotlib Line2D
        The decisions.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.plotting import GroupRateDisplay
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier("partial_dp").fit(X, y, sensitive_features=groups)
    >>> display = GroupRateDisplay.from_estimator(
    ...     clf, X, y, sensitive_features=groups, ranks=(0.05, 0.3)
    ... )
    >>> display.ax_.get_ylabel()
    'selection rate of group 1'
    """

    def __init__(
        self,
        curves: Mapping[str, Curve],
        *,
        reference: str,
        rate: str = "selection_rate",
        ranks: tuple[float, float] | None = None,
        kappa: float | None = None,
    ):
        self.curves = curves
        self.reference = reference
        self.rate = rate
        self.ranks = ranks
        self.kappa = kappa

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        rate: str = "selection_rate",
        reference: Any = None,
        response_method: str = "auto",
        threshold: float | None = None,
        ranks: tuple[float, float] | None = None,
        kappa: float | None = None,
        ax: Any = None,
    ) -> GroupRateDisplay:
        """Draw the rates that a fitted classifier's scores give.

        Parameters
        ----------
        estimator : classifier
            Fitted, of two classes: any classifier, pipeline or search.
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,) or None
            The labels; not needed for the selection rate.
        sensitive_features : array-like, DataFrame or None, default=None
            The groups; None takes them from the classifier's `sensitive_columns`.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The weights of the rows.
        rate : {"selection_rate", "true_positive_rate", "false_positive_rate"}, \
                default="selection_rate"
            Which rate.
        reference : group or None, default=None
            The group on the horizontal axis; None takes the largest.
        response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
            What the scores are; curves do not depend on it where both are there.
        threshold : float or None, default=None
            Where decisions change: the marked points. None is 1/2 for probabilities, else 0.
        ranks : tuple of float or None, default=None
            The range of ranks that is marked; None takes that of the classifier's constraint, if it
            names any.
        kappa : float or None, default=None
            A gap to be marked along the diagonal.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : GroupRateDisplay
            With what was drawn.

        Raises
        ------
        ValueError
            If there are fewer than two groups, or labels are missing where the rate needs them.
        """
        scored = Scored.of(
            estimator, X, y, sensitive_features, sample_weight,
            response_method=response_method, threshold=threshold,
        )  # fmt: skip
        ranks = ranks_of(estimator) if ranks is None else ranks
        return cls.from_scored(scored, rate, reference, ranks, kappa).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
        rate: str = "selection_rate",
        reference: Any = None,
        threshold: float | None = None,
        ranks: tuple[float, float] | None = None,
        kappa: float | None = None,
        ax: Any = None,
    ) -> GroupRateDisplay:
        """Draw the rates that given scores give.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            The labels; not needed for the selection rate.
        y_pred : array-like of shape (n_samples,)
            The scores.
        sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
            The groups.
        threshold : float or None, default=None
            Where decisions change; None is 1/2 if all scores are between 0 and 1, else 0.
        sample_weight, rate, reference, ranks, kappa, ax
            See :meth:`from_estimator`.

        Returns
        -------
        display : GroupRateDisplay
            With what was drawn.
        """
        scored = Scored.check(y_true, y_pred, sensitive_features, sample_weight, threshold)
        return cls.from_scored(scored, rate, reference, ranks, kappa).plot(ax=ax)

    @classmethod
    def from_scored(
        cls,
        scored: Scored,
        rate: str = "selection_rate",
        reference: Any = None,
        ranks: Any = None,
        kappa: float | None = None,
    ) -> GroupRateDisplay:
        """Return the display of checked scores, not drawn; see :meth:`from_estimator`."""
        check_option("rate", rate, dict.fromkeys(_RATES, ""))
        among = _rows_of(scored, rate)
        parts = [scored.of_group(k, among) for k in range(len(scored.groups))]
        names = group_labels(scored.groups)
        known = [k for k, (scores, _) in enumerate(parts) if len(scores)]
        if len(known) < 2:
            raise ValueError(
                f"GroupRateDisplay: a {RATES[rate].title} is needed of two groups at least, and "
                f"there are rows for {len(known)} of {len(names)}."
            )
        first = _reference(scored, names, known, reference)
        curves = {
            names[k]: _curve(parts[first], parts[k], scored.threshold) for k in known if k != first
        }
        ranks = None if ranks is None else check_ranks(ranks)
        return cls(curves, reference=names[first], rate=rate, ranks=ranks, kappa=kappa)

    def plot(self, *, ax: Any = None) -> GroupRateDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : GroupRateDisplay
            Itself.
        """
        self.ax_ = axes_for(ax, f"{type(self).__name__}.plot", figsize=(4.8, 5.2))
        self.figure_ = self.ax_.figure
        tidy(self.ax_)
        handles = self._draw_background()
        self.lines_, self.points_ = {}, {}
        for k, (name, curve) in enumerate(self.curves.items()):
            label = name if len(self.curves) > 1 else "all thresholds"
            x, y = _thinned(curve.x, curve.y)
            (self.lines_[name],) = self.ax_.plot(
                x, y, label=label, linewidth=1.8, zorder=3.0, **look(k)
            )
            (self.points_[name],) = self.ax_.plot(
                *([end] for end in curve.decided), marker=MARKERS[k % len(MARKERS)], markersize=8.0,
                linestyle="none", color=look(k)["color"], markeredgecolor="white", zorder=4.0,
                label="the decisions", clip_on=False,
            )  # fmt: skip
        title = RATES[self.rate].title
        other = f"group {next(iter(self.curves))}" if len(self.curves) == 1 else "the other groups"
        self.ax_.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
        self.ax_.set_xlabel(f"{title} of group {self.reference}")
        self.ax_.set_ylabel(f"{title} of {other}")
        curves = list(self.lines_.values())
        legend_above(self.ax_, [*curves, next(iter(self.points_.values())), *handles])
        return self

    def _draw_background(self) -> list[Any]:
        """Draw the diagonal, the range of ranks and the band of kappa; return what to name."""
        from matplotlib.patches import Rectangle

        ends = [0.0, 1.0]
        handles = self.ax_.plot(ends, ends, color=GREY, linewidth=0.9, label="alike", zorder=2.0)
        if self.kappa is not None:
            label = f"gap of at most {self.kappa:g}"
            below, above = ([end + side * self.kappa for end in ends] for side in (-1.0, 1.0))
            handles.append(
                self.ax_.fill_between(ends, below, above, color="0.9", label=label, zorder=0.5)
            )
        if self.ranks is not None:
            low, high = self.ranks
            label = f"ranks {100.0 * low:g}% to {100.0 * high:g}%"
            square = Rectangle(
                (low, low), high - low, high - low, facecolor=("#E69F00", 0.16), edgecolor=GREY,
                hatch="...", linewidth=1.0, linestyle=(0, (3, 2)), label=label, zorder=1.0,
            )  # fmt: skip
            square.set_hatch_linewidth(0.3)
            handles.append(self.ax_.add_patch(square))
        return handles


def _rows_of(scored: Scored, rate: str) -> Array:
    """Return the rows that a rate is about."""
    if scored.labels is None:
        if rate != "selection_rate":
            raise ValueError(f"rate={rate!r} needs the labels; they are None.")
        return np.ones(len(scored.scores), dtype=bool)
    labels = np.ones(len(scored.scores), dtype=bool)
    if rate != "selection_rate":
        labels = scored.labels == positive_class(scored.labels)
    return RATES[rate].denominator(labels, labels)


def _reference(scored: Scored, names: list[str], known: list[int], reference: Any) -> int:
    """Return the position of the group on the horizontal axis: the largest, if none is named."""
    if reference is None:
        grouped = scored.groups.known
        size = np.bincount(scored.groups.codes[grouped], scored.weight[grouped], len(names))
        return max(known, key=lambda k: size[k])
    found = [k for k in known if reference in (names[k], scored.groups.names.tolist()[k])]
    if not found:
        raise ValueError(
            f"reference={reference!r} is none of the groups with rows: {[names[k] for k in known]}."
        )
    return found[0]


def _curve(first: tuple[Array, Array], second: tuple[Array, Array], threshold: float) -> Curve:
    """Return the rates of two groups at all thresholds, without points on straight stretches."""
    points = np.unique(np.concatenate([first[0], second[0]]))[::-1]
    points = np.append(points, -np.inf)
    x, y = _share_above(first, points), _share_above(second, points)
    turn = np.ones(len(points), dtype=bool)
    dx, dy = np.diff(x), np.diff(y)
    turn[1:-1] = np.abs(dx[:-1] * dy[1:] - dx[1:] * dy[:-1]) > 1e-15
    at = np.array([threshold])
    decided = float(_share_above(first, at)[0]), float(_share_above(second, at)[0])
    return Curve(x[turn], y[turn], decided)


def _thinned(x: Array, y: Array) -> tuple[Array, Array]:
    """Return a curve with no more points than can be seen: dashes of many points take long."""
    if len(x) <= _POINTS:
        return x, y
    cell = np.stack([x, y]) * _POINTS // 1.0
    new = np.ones(len(x), dtype=bool)
    new[1:-1] = (np.diff(cell)[:, :-1] != 0.0).any(axis=0)
    return x[new], y[new]


def _share_above(part: tuple[Array, Array], points: Array) -> Array:
    """Return the shares of weight above points."""
    scores, shares = part
    below = np.append(0.0, np.cumsum(shares))
    below /= below[-1]
    return np.clip(1.0 - below[np.searchsorted(scores, points, side="right")], 0.0, 1.0)
