"""How the scores of the groups are distributed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairconstrained.inspection.scores import Scored, ranks_of
from fairconstrained.metrics.rates import group_labels
from fairconstrained.plotting.style import GREY, HATCHES, axes_for, legend_above, look, tidy
from fairconstrained.utils.typing import Array
from fairconstrained.utils.validation import check_ranks

_MOST_BINS = 40


@dataclass(frozen=True, eq=False)
class Density:
    """A histogram of one group's scores.

    Parameters
    ----------
    heights : ndarray of shape (n_bins,)
        The share of weight in each bin divided by the bin's width.
    n_rows : int
        How many rows it is made of.
    inside : tuple of float or None
        The scores between which the group's range of ranks lies.
    """

    heights: Array
    n_rows: int
    inside: tuple[float, float] | None = None


class ScoreDensityDisplay:
    """Densities of the scores by group, with the threshold and a range of ranks.

    Use :meth:`from_estimator` or :meth:`from_predictions`; the constructor only keeps its
    arguments. Densities are histograms with weights, not smoothed: the area below each is one.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        The edges of the bins.
    densities : mapping of str to Density
        The groups' histograms.
    threshold : float
        Where decisions change.
    unit : str, default="score"
        What the scores are.
    ranks : tuple of float or None, default=None
        The range of ranks that is shaded.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure.
    lines_ : dict of str to matplotlib StepPatch
        The outlines.
    threshold_line_ : matplotlib Line2D
        The threshold.
    shades_ : dict of str to matplotlib StepPatch
        The shaded ranges of ranks; empty without `ranks`.

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

    def __init__(
        self,
        edges: Array,
        densities: Mapping[str, Density],
        *,
        threshold: float,
        unit: str = "score",
        ranks: tuple[float, float] | None = None,
    ):
        self.edges = edges
        self.densities = densities
        self.threshold = threshold
        self.unit = unit
        self.ranks = ranks

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        response_method: str = "auto",
        threshold: float | None = None,
        ranks: tuple[float, float] | None = None,
        bins: Any = None,
        ax: Any = None,
    ) -> ScoreDensityDisplay:
        """Draw the scores that a fitted classifier gives rows.

        Parameters
        ----------
        estimator : classifier
            Fitted, of two classes: any classifier, pipeline or search.
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like or None, default=None
            Not used; it is there for the calling convention.
        sensitive_features : array-like, DataFrame or None, default=None
            The groups; None takes them from the classifier's `sensitive_columns`.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The weights of the rows.
        response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
            What the scores are; "auto" takes probabilities where there are any.
        threshold : float or None, default=None
            Where decisions change; None is 1/2 for probabilities and 0 for other scores.
        ranks : tuple of float or None, default=None
            Shades the scores of the ranks between these shares of each group, counted from its
            highest score; None takes those of the classifier's constraint, if it names any.
        bins : int, array-like or None, default=None
            How many bins, or their edges; None takes the more the larger the smallest group is.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : ScoreDensityDisplay
            With what was drawn.
        """
        scored = Scored.of(
            estimator, X, None, sensitive_features, sample_weight,
            response_method=response_method, threshold=threshold,
        )  # fmt: skip
        ranks = ranks_of(estimator) if ranks is None else ranks
        return cls.from_scored(scored, ranks, bins).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
        threshold: float | None = None,
        ranks: tuple[float, float] | None = None,
        bins: Any = None,
        unit: str = "score",
        ax: Any = None,
    ) -> ScoreDensityDisplay:
        """Draw given scores.

        Parameters
        ----------
        y_true : array-like or None
            Not used; it is there for the calling convention.
        y_pred : array-like of shape (n_samples,)
            The scores.
        sensitive_features : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns)
            The groups.
        sample_weight, ranks, bins, ax
            See :meth:`from_estimator`.
        threshold : float or None, default=None
            Where decisions change; None is 1/2 if all scores are between 0 and 1, else 0.
        unit : str, default="score"
            What the scores are, for the label of the axis.

        Returns
        -------
        display : ScoreDensityDisplay
            With what was drawn.
        """
        scored = Scored.check(None, y_pred, sensitive_features, sample_weight, threshold, unit)
        return cls.from_scored(scored, ranks, bins).plot(ax=ax)

    @classmethod
    def from_scored(
        cls, scored: Scored, ranks: Any = None, bins: Any = None
    ) -> ScoreDensityDisplay:
        """Return the display of checked scores, not drawn; see :meth:`from_estimator`."""
        ranks = None if ranks is None else check_ranks(ranks)
        if bins is None:  # Rice's rule for the smallest group
            smallest = np.bincount(scored.groups.codes[scored.groups.known]).min()
            bins = int(np.clip(2.0 * smallest ** (1.0 / 3.0), 8, _MOST_BINS))
        edges = np.histogram_bin_edges(scored.scores, bins)
        densities = {}
        for k, name in enumerate(group_labels(scored.groups)):
            scores, shares = scored.of_group(k)
            heights = np.histogram(scores, edges, weights=shares)[0] / np.diff(edges)
            inside = None if ranks is None else _scores_between(scores, shares, ranks)
            densities[name] = Density(heights, len(scores), inside)
        return cls(edges, densities, threshold=scored.threshold, unit=scored.unit, ranks=ranks)

    def plot(self, *, ax: Any = None) -> ScoreDensityDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : ScoreDensityDisplay
            Itself.
        """
        self.ax_ = axes_for(ax, f"{type(self).__name__}.plot")
        self.figure_ = self.ax_.figure
        self.lines_, self.shades_ = {}, {}
        for k, (name, density) in enumerate(self.densities.items()):
            label = f"{name} (n = {density.n_rows})"
            self.lines_[name] = self.ax_.stairs(
                density.heights, self.edges, label=label, linewidth=1.8, zorder=3.0, **look(k)
            )
            if density.inside is not None:
                self.shades_[name] = self._shade(density, density.inside, k)
        self.threshold_line_ = self.ax_.axvline(
            self.threshold, color="black", linewidth=1.0, label="decision threshold"
        )
        self._finish()
        return self

    def _shade(self, density: Density, inside: tuple[float, float], k: int) -> Any:
        """Shade the part of a histogram between two scores."""
        low, high = inside
        between = self.edges[(self.edges > low) & (self.edges < high)]
        edges = np.unique(np.concatenate([[low], between, [max(high, low + 1e-12)]]))
        bins = np.clip(np.searchsorted(self.edges, edges[:-1], side="right") - 1, 0, None)
        bins = np.minimum(bins, len(density.heights) - 1)
        colour = look(k)["color"]
        return self.ax_.stairs(
            density.heights[bins], edges, fill=True, facecolor=(colour, 0.22), edgecolor=colour,
            hatch=HATCHES[1 + k % (len(HATCHES) - 1)], linewidth=0.0, zorder=2.0,
        )  # fmt: skip

    def _finish(self) -> None:
        """Set labels and legend."""
        from matplotlib.patches import Patch

        tidy(self.ax_)
        self.ax_.set_xlabel(self.unit)
        self.ax_.set_ylabel("density")
        self.ax_.set_ylim(bottom=0.0)
        handles = [*self.lines_.values(), self.threshold_line_]
        if self.ranks is not None:
            low, high = (f"{100.0 * end:g}%" for end in self.ranks)
            label = f"ranks {low} to {high}"
            handles.append(Patch(facecolor="0.88", edgecolor=GREY, hatch="///", label=label))
        legend_above(self.ax_, handles)


def _scores_between(
    scores: Array, shares: Array, ranks: tuple[float, float]
) -> tuple[float, float]:
    """Return the scores at the ends of a range of ranks, counted from the highest score."""
    above = 1.0 - np.cumsum(shares)  # strictly above each score, ascending
    low, high = ranks
    # The lowest score with at most `high` above it, and the lowest with at most `low`.
    places = np.searchsorted(-above, [-high - 1e-12, -low - 1e-12])
    first, last = scores[np.minimum(places, len(scores) - 1)]
    return float(first), float(last)
