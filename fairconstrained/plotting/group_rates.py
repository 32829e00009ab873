"""Plots of the rate of one group against that of another, over all thresholds."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from sklearn.metrics import roc_curve

from fairconstrained.inspection.shown import GroupScores, Ranks, ranks_of
from fairconstrained.metrics.inputs import group_labels, positive_class
from fairconstrained.metrics.rates import RATES
from fairconstrained.plotting import style
from fairconstrained.plotting.style import Artist, Axes
from fairconstrained.utils.arguments import check_kappa, check_option, check_ranks
from fairconstrained.utils.arrays import Array, ArrayLike, Classifier, MatrixLike

_SHORT_NAME = 18  # characters of the names that fit into two columns of the legend
_LABEL_WIDTH = 50  # characters that fit below the axes
_RATES = ("selection_rate", "true_positive_rate", "false_positive_rate")


@dataclass(frozen=True, eq=False)
class Curve:
    """The rates of two groups at all thresholds."""

    # the rates of the reference group and of the other group, from (0, 0) to (1, 1), (n_points,)
    x: Array
    y: Array
    at_threshold: tuple[float, float]  # the two rates at the decision threshold


@dataclass(eq=False, repr=False)
class GroupRateDisplay(style.AxesDisplay):
    r"""The selection rate of one group against that of another, over all thresholds.

    Each point of a curve belongs to a threshold :math:`\theta`. Its coordinates are :math:`\Pr(s >
    \theta \mid a)` and :math:`\Pr(s > \theta \mid b)`. On the diagonal the rates are equal. The
    largest vertical distance from the diagonal is the largest difference of the two rates; with two
    groups it is :func:`~fairconstrained.metrics.roc_parity_difference`. A range of ranks is drawn
    as a square; partial demographic parity restricts the part of the curve inside it. Of more than
    eight groups, those with extreme rates and the largest are shown, and the others as one group.

    Create it with :meth:`from_estimator` or :meth:`from_predictions`. The constructor only stores
    its arguments.

    Parameters
    ----------
    curves : mapping of str to Curve
        The curves of all groups except the reference group.
    reference : str
        The reference group, on the horizontal axis.
    rate : str, default="selection_rate"
        "selection_rate", "true_positive_rate" or "false_positive_rate".
    ranks : tuple of float or None, default=None
        The marked range of ranks.
    kappa : float or None, default=None
        The largest gap allowed, marked as a band along the diagonal.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, matplotlib Figure
        The axes and the figure.
    lines_ : dict of str to matplotlib Line2D
        The curves.
    points_ : dict of str to matplotlib Line2D
        The points at the decision threshold.

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

    curves: Mapping[str, Curve]
    _: KW_ONLY
    reference: str
    rate: str = "selection_rate"
    ranks: Ranks = None
    kappa: float | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        X: MatrixLike,
        y: ArrayLike,
        *,
        sensitive_features: MatrixLike | None = None,
        sample_weight: ArrayLike | None = None,
        rate: str = "selection_rate",
        reference: object = None,
        response_method: str = "auto",
        threshold: float | None = None,
        ranks: Ranks = None,
        kappa: float | None = None,
        pos_label: object = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the rates of a fitted classifier.

        Parameters
        ----------
        estimator, X, sensitive_features, sample_weight, threshold, pos_label, ax
            See :meth:`ScoreDensityDisplay.from_estimator`.
        y : array-like of shape (n_samples,) or None
            The labels; not needed for the selection rate.
        rate : str, default="selection_rate"
            "selection_rate", "true_positive_rate" or "false_positive_rate".
        reference : group or None, default=None
            The group on the horizontal axis; None means the largest group.
        response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
            The method that gives the scores. The curves are the same for both methods.
        ranks : tuple of float or None, default=None
            The range of ranks to mark; None uses the range of the classifier's constraint, if it
            has one.
        kappa : float or None, default=None
            The largest gap allowed, marked as a band along the diagonal.

        Raises
        ------
        ValueError
            If there are fewer than two groups, or the rate needs labels and `y` is None.
        """
        scores = GroupScores.from_estimator(
            estimator, X, y, sensitive_features, sample_weight,
            response_method=response_method, threshold=threshold, pos_label=pos_label,
        )  # fmt: skip
        ranks = ranks_of(estimator) if ranks is None else ranks
        return cls._of(scores, rate, reference, ranks, kappa).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sensitive_features: MatrixLike,
        sample_weight: ArrayLike | None = None,
        rate: str = "selection_rate",
        reference: object = None,
        threshold: float | None = None,
        ranks: Ranks = None,
        kappa: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the rates of given scores.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            The labels; not needed for the selection rate.
        y_pred : array-like of shape (n_samples,)
            The scores.
        sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
            The groups.
        threshold : float or None, default=None
            The decision threshold; None means 1/2 if all scores are between 0 and 1, and else 0.
        sample_weight, rate, reference, ranks, kappa, ax
            See :meth:`from_estimator`.
        """
        scores = GroupScores.from_arrays(
            y_true, y_pred, sensitive_features, sample_weight, threshold
        )
        return cls._of(scores, rate, reference, ranks, kappa).plot(ax=ax)

    @classmethod
    def _of(
        cls, scores: GroupScores, rate: str, reference: object, ranks: Ranks, kappa: float | None
    ) -> Self:
        """Return the display, not drawn."""
        check_option("rate", rate, _RATES)
        labels = scores.labels
        if RATES[rate].needs_labels:
            if labels is None:
                raise ValueError(f"rate={rate!r} needs labels, but they are None.")
            labels = labels == positive_class(labels)
        rows = RATES[rate].denominator(labels, np.ones(len(scores.values), dtype=bool))
        first = _reference(scores, rows, rate, reference)
        shown = scores.chosen(keep=first)
        parts = {name: shown.of_group(k, rows) for k, name in enumerate(group_labels(shown.groups))}
        against_name = group_labels(scores.groups)[first]
        against = parts.pop(against_name)
        curves = {
            name: _curve(against, part, scores.threshold)
            for name, part in parts.items()
            if len(part[0])
        }
        ranks = None if ranks is None else check_ranks(ranks)
        kappa = None if kappa is None else check_kappa(kappa)
        return cls(curves, reference=against_name, rate=rate, ranks=ranks, kappa=kappa)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the curves on axes, those of a new figure if None, and return the display."""
        columns = 2 if max(map(len, self.curves), default=0) <= _SHORT_NAME else 1
        lines = sum(style.plain_text(name).count("\n") + 1 for name in self.curves)
        n_rows = max(-(-(lines + 3) // columns), 2)
        self._start(ax, (4.8, 4.7 + 0.25 * n_rows))  # with room for the legend above
        handles = self._draw_background()
        self.lines_, self.points_ = {}, {}
        for k, (name, curve) in enumerate(self.curves.items()):
            label = style.plain_text(name) if len(self.curves) > 1 else "all thresholds"
            look = {"label": label, "linewidth": 1.8, "zorder": 3.0, **style.line_style(k)}
            (self.lines_[name],) = self.ax_.plot(curve.x, curve.y, **look)
            (self.points_[name],) = self.ax_.plot(
                *([end] for end in curve.at_threshold), **style.mark(k), markersize=8.0,
                linestyle="none", markeredgecolor="white", zorder=4.0, label="predictions",
                clip_on=False,
            )  # fmt: skip
        title = RATES[self.rate].title
        other = f"group {next(iter(self.curves))}" if len(self.curves) == 1 else "the other groups"
        xlabel, ylabel = (
            style.plain_text(f"{title} of {group}", _LABEL_WIDTH)
            for group in (f"group {self.reference}", other)
        )
        self.ax_.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal", anchor="S")
        self.ax_.set(xlabel=xlabel, ylabel=ylabel)
        points = next(iter(self.points_.values()))
        style.legend_above(self.ax_, [*self.lines_.values(), points, *handles])
        return self

    def _draw_background(self) -> list[Artist]:
        """Draw the diagonal, the range of ranks and the band of kappa; return legend handles."""
        from matplotlib.patches import Rectangle

        ends = [0.0, 1.0]
        handles: list[Artist] = []
        handles += self.ax_.plot(
            ends, ends, color=style.GREY, linewidth=0.9, label="equal rates", zorder=2.0
        )
        if self.kappa is not None:
            label = f"gap of at most {self.kappa:g}"
            below, above = ([end + side * self.kappa for end in ends] for side in (-1.0, 1.0))
            handles.append(
                self.ax_.fill_between(ends, below, above, color="0.9", label=label, zorder=0.5)
            )
        if self.ranks is not None:
            low, high = self.ranks
            square = Rectangle(
                (low, low), high - low, high - low, facecolor=("#E69F00", 0.16), hatch="...",
                edgecolor=style.GREY, linewidth=1.0, linestyle=(0, (3, 2)), zorder=1.0,
                label=style.ranks_label(self.ranks),
            )  # fmt: skip
            square.set_hatch_linewidth(0.3)
            handles.append(self.ax_.add_patch(square))
        return handles


def _reference(scores: GroupScores, rows: Array, rate: str, reference: object) -> int:
    """Return the index of the reference group; the largest group by default."""
    groups, names = scores.groups, group_labels(scores.groups)
    measured = np.flatnonzero(scores.counts(rows)).tolist()
    if len(measured) < 2:
        raise ValueError(
            f"GroupRateDisplay needs at least two groups with a {RATES[rate].title}; "
            f"{len(measured)} of {len(names)} groups have one."
        )
    if reference is None:
        sizes = np.bincount(groups.codes[groups.known], scores.weight[groups.known], len(names))
        return max(measured, key=lambda k: sizes[k])
    for k in measured:
        if reference in (names[k], groups.names.tolist()[k]):
            return k
    raise ValueError(
        f"reference={reference!r} is not one of the groups: {[names[k] for k in measured]}."
    )


def _curve(first: tuple[Array, Array], second: tuple[Array, Array], threshold: float) -> Curve:
    """Return the rates of two groups at all thresholds."""
    scores, shares = (np.concatenate(parts) for parts in zip(first, second, strict=True))
    # The two groups are the two classes of a curve of true against false positive rates.
    in_second = np.arange(len(scores)) >= len(first[0])
    x, y, _ = roc_curve(in_second, scores, sample_weight=shares)
    at_first, at_second = (float(part[1] @ (part[0] > threshold)) for part in (first, second))
    return Curve(x, y, (at_first, at_second))
