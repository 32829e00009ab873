"""Plots of the score distributions of groups."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from fairconstrained.inspection.shown import GroupScores, Ranks, ranks_of
from fairconstrained.metrics.inputs import group_labels
from fairconstrained.plotting import style
from fairconstrained.plotting.style import Artist, Axes
from fairconstrained.utils.arguments import check_ranks
from fairconstrained.utils.arrays import Array, ArrayLike, Classifier, MatrixLike, quantiles

_MAX_BINS = 40
_MOST_OVERLAID = 4  # groups; more of them are drawn one below the other


@dataclass(frozen=True, eq=False)
class Density:
    """A histogram of the scores of a group."""

    # the share of the weight in each bin, divided by the width of the bin, (n_bins,)
    heights: Array
    n_rows: int  # the number of rows
    inside: tuple[float, float] | None = None  # the scores at the ends of the range of ranks

    @classmethod
    def of(cls, scores: Array, shares: Array, edges: Array, ranks: Ranks = None) -> "Density":
        """Return the histogram of scores, whose shares of the weight sum to one."""
        heights = np.histogram(scores, edges, weights=shares)[0] / np.diff(edges)
        if ranks is None:
            return cls(heights, len(scores))
        # Ranks are counted from the highest score.
        ends = 1.0 - np.array(ranks)[::-1]
        low, high = quantiles(scores, ends, shares)
        return cls(heights, len(scores), (float(low), float(high)))


@dataclass(eq=False, repr=False)
class ScoreDensityDisplay(style.AxesDisplay):
    """Score densities by group, with the decision threshold and a range of ranks.

    Up to four groups are drawn over each other. More groups are drawn below each other, with equal
    heights. Of more than eight groups, those with extreme rates and the largest are shown, and the
    others as one group.

    Create it with :meth:`from_estimator` or :meth:`from_predictions`. The constructor only stores
    its arguments. The densities are weighted histograms; the area below each is one.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        The edges of the bins.
    densities : mapping of str to Density
        The histogram of each group.
    threshold : float
        The decision threshold.
    unit : str, default="score"
        The label of the horizontal axis.
    ranks : tuple of float or None, default=None
        The shaded range of ranks.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, matplotlib Figure
        The axes and the figure.
    lines_ : dict of str to matplotlib StepPatch
        The outlines of the histograms.
    threshold_line_ : matplotlib Line2D
        The line at the threshold.
    shades_ : dict of str to matplotlib StepPatch
        The shaded parts; empty without `ranks`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from fairconstrained import FairLogisticClassifier, make_biased_classification
    >>> from fairconstrained.plotting import ScoreDensityDisplay
    >>> X, y, groups = make_biased_classification(random_state=0)
    >>> clf = FairLogisticClassifier(kappa=0.05).fit(X, y, sensitive_features=groups)
    >>> display = ScoreDensityDisplay.from_estimator(
    ...     clf, X, y, sensitive_features=groups, ranks=(0.05, 0.3)
    ... )
    >>> display.ax_.get_xlabel()
    'probability of the positive class'
    """

    edges: Array
    densities: Mapping[str, Density]
    _: KW_ONLY
    threshold: float
    unit: str = "score"
    ranks: Ranks = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        X: MatrixLike,
        y: ArrayLike | None = None,
        *,
        sensitive_features: MatrixLike | None = None,
        sample_weight: ArrayLike | None = None,
        response_method: str = "auto",
        threshold: float | None = None,
        ranks: Ranks = None,
        bins: int | ArrayLike | None = None,
        pos_label: object = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the score densities of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier, a pipeline or a search.
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like or None, default=None
            Ignored; present for API consistency.
        sensitive_features : array-like, DataFrame or None, default=None
            The groups; None reads them from the `sensitive_columns` of the classifier.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The sample weights.
        response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
            The method that gives the scores. With "auto", `predict_proba` is used if it exists.
        threshold : float or None, default=None
            The decision threshold. None takes that of the classifier, or 1/2 for probabilities and
            0 for other scores if it has none.
        ranks : tuple of float or None, default=None
            The range of ranks to shade, as shares of each group counted from its highest score;
            None uses the range of the classifier's constraint, if it has one.
        bins : int, array-like or None, default=None
            The number of bins, or their edges; None chooses the number by Rice's rule for the
            smallest group, with more than four groups for the median one.
        pos_label : label or None, default=None
            The positive class; None takes that of the classifier. With several classes it is
            required: the scores are then those of this class minus the highest of the others.
        ax : matplotlib Axes or None, default=None
            The axes to draw on; None creates a new figure.
        """
        scores = GroupScores.from_estimator(
            estimator, X, None, sensitive_features, sample_weight,
            response_method=response_method, threshold=threshold, marginal=True,
            pos_label=pos_label,
        )  # fmt: skip
        scores = replace(scores, unit=style.plain_text(scores.unit))  # it may name a class
        ranks = ranks_of(estimator) if ranks is None else ranks
        return cls._of(scores, ranks, bins).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sensitive_features: MatrixLike,
        sample_weight: ArrayLike | None = None,
        threshold: float | None = None,
        ranks: Ranks = None,
        bins: int | ArrayLike | None = None,
        unit: str = "score",
        ax: Axes | None = None,
    ) -> Self:
        """Plot the densities of given scores.

        Parameters
        ----------
        y_true : array-like or None
            Ignored; present for API consistency.
        y_pred : array-like of shape (n_samples,)
            The scores.
        sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
            The groups.
        sample_weight, ranks, bins, ax
            See :meth:`from_estimator`.
        threshold : float or None, default=None
            The decision threshold; None means 1/2 if all scores are between 0 and 1, and else 0.
        unit : str, default="score"
            The label of the horizontal axis.
        """
        scores = GroupScores.from_arrays(
            None, y_pred, sensitive_features, sample_weight, threshold, unit
        )
        return cls._of(scores, ranks, bins).plot(ax=ax)

    @classmethod
    def _of(cls, scores: GroupScores, ranks: Ranks, bins: int | ArrayLike | None) -> Self:
        """Return the display, not drawn."""
        ranks = None if ranks is None else check_ranks(ranks)
        scores = scores.chosen()
        if bins is None:  # Rice's rule for the smallest group
            sizes = np.bincount(scores.groups.codes[scores.groups.known])
            typical = sizes.min() if len(sizes) <= _MOST_OVERLAID else np.median(sizes)
            bins = int(np.clip(2.0 * typical ** (1.0 / 3.0), 8, _MAX_BINS))
        edges = np.histogram_bin_edges(scores.values, bins)
        densities = {
            name: Density.of(*scores.of_group(k), edges, ranks)
            for k, name in enumerate(group_labels(scores.groups))
        }
        return cls(edges, densities, threshold=scores.threshold, unit=scores.unit, ranks=ranks)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the densities on axes, those of a new figure if None, and return the display."""
        from matplotlib.patches import Patch

        in_rows, n = len(self.densities) > _MOST_OVERLAID, len(self.densities)
        self._start(ax, (5.6, 1.3 + 0.42 * n if in_rows else 4.2))
        self.lines_, self.shades_ = {}, {}
        names = [
            f"{style.plain_text(name, 26 if in_rows else 40)} (n = {density.n_rows})"
            for name, density in self.densities.items()
        ]
        for k, (name, density) in enumerate(self.densities.items()):
            look = {"color": style.COLOURS[0]} if in_rows else style.line_style(k)
            base, heights = 0.0, density.heights
            if in_rows:  # the highest bin of each group has the same height
                base, heights = n - 1.0 - k, 0.85 * heights / max(heights.max(), 1e-300)
            stairs = partial(self.ax_.stairs, base + heights, baseline=base)
            self.lines_[name] = stairs(
                self.edges, linewidth=1.2 if in_rows else 1.8, zorder=3.0, label=names[k], **look
            )
            if density.inside is not None:
                low, high = density.inside
                self.shades_[name] = stairs(
                    np.clip(self.edges, low, max(high, low + 1e-12)), fill=True, zorder=2.0,
                    facecolor=(look["color"], 0.22), edgecolor=look["color"], linewidth=0.0,
                    hatch=style.HATCHES[1 + k % (len(style.HATCHES) - 1)],
                )  # fmt: skip
            elif in_rows:
                stairs(self.edges, fill=True, alpha=0.25, color=style.COLOURS[0], zorder=2.0)
        self.threshold_line_ = self.ax_.axvline(
            self.threshold, color="black", linewidth=1.0, label="decision threshold"
        )
        self.ax_.set_xlabel(self.unit)
        if in_rows:
            self.ax_.set_yticks(np.arange(n)[::-1], names)
            self.ax_.tick_params(axis="y", length=0.0)
            self.ax_.set_ylim(-0.05, n)
        else:
            self.ax_.set_ylabel("density")
            self.ax_.set_ylim(bottom=0.0)
        handles: list[Artist] = [*([] if in_rows else self.lines_.values()), self.threshold_line_]
        if self.ranks is not None:
            label = style.ranks_label(self.ranks)
            handles.append(Patch(facecolor="0.88", edgecolor=style.GREY, hatch="///", label=label))
        style.legend_above(self.ax_, handles)
        return self
