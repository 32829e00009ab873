"""The term of partial demographic parity, and the gaps of decisions in a range of ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq

from fairconstrained.constraints.measures import Measures, rates_of
from fairconstrained.functions.surrogates import Surrogate
from fairconstrained.terms.base import Term
from fairconstrained.terms.rank_gaps import RankGaps
from fairconstrained.terms.threshold_rates import ThresholdRates
from fairconstrained.utils.typing import Array

_FARTHEST = 1e9  # distance from 0 beyond which surrogates are nearly 0 or 1
_DOUBLINGS, _HALVINGS = 40, 30  # of the interval in which a threshold lies


def partial_term(
    measures: Measures, surrogate: Surrogate, p: Array, kappa: float, ranks: tuple[float, float]
) -> PartialRates:
    """Return p <= rate <= p + kappa (beta - alpha) for all groups, over beta - alpha."""
    width, n_groups, count = ranks[1] - ranks[0], len(measures), len(p)
    eye = sp.eye_array(n_groups * count, format="csr") / width
    tops = p + kappa * width
    rates = [name[:-1] + f", s > theta_{j + 1})" for name in measures.names for j in range(count)]
    texts = [(">=", p), ("<=", tops)]
    names = tuple(
        f"{rate} {sign} {bound:g}"
        for sign, bounds in texts
        for rate, bound in zip(rates, np.tile(bounds, n_groups), strict=True)
    )
    return PartialRates(
        rates=rates_of(measures, surrogate),
        thresholds=np.array([_threshold(surrogate, rate) for rate in 0.5 * (p + tops)]),
        combination=sp.csr_array(sp.vstack([-eye, eye], format="csr")),
        offset=np.concatenate([np.tile(-p, n_groups), np.tile(tops, n_groups)]) / width,
        free=True,
        names=names,
        ranks=ranks,
        kappa=kappa,
    )


def _threshold(surrogate: Surrogate, rate: float) -> float:
    """Return theta with sigma(-theta) = rate: where scores of 0 have that rate."""

    def excess(theta: float) -> float:
        return float(surrogate.value(np.array([-theta]))[0]) - rate

    # brentq halves the interval where the surrogate is flat, far from 0.
    return float(brentq(excess, -_FARTHEST, _FARTHEST, xtol=1e-12, maxiter=500))


@dataclass(frozen=True, eq=False)
class PartialRates(ThresholdRates):
    """Rates at free thresholds that are to be near given ranks in all groups."""

    ranks: tuple[float, float] = (0.0, 1.0)
    kappa: float = 0.0

    def auxiliary_for(self, value: Callable[[Array], Array]) -> Array:
        """Return the thresholds at which the largest outputs are least, by bisection.

        The bounds p <= rate are violated more for higher thresholds, the bounds on the other side
        for lower ones.

        Parameters
        ----------
        value : callable
            Maps thresholds to outputs.
        """

        def too_low(thresholds: Array) -> Array:
            below, above = value(thresholds).reshape(2, -1, self.n_auxiliary).max(axis=1)
            return np.asarray(below < above)

        width = np.ones(self.n_auxiliary)
        low, high = self.auxiliary_start - width, self.auxiliary_start + width
        for _ in range(_DOUBLINGS):
            high_enough, low_enough = ~too_low(high), too_low(low)
            if np.all(high_enough & low_enough):
                break
            width = 2.0 * width
            low, high = (
                np.where(low_enough, low, low - width),
                np.where(high_enough, high, high + width),
            )
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            up = too_low(middle)
            low, high = np.where(up, middle, low), np.where(up, high, middle)
        return 0.5 * (low + high)

    def zero_one(self) -> Term:
        """Return the gaps of decisions in the range, whatever the thresholds are."""
        inside = f" | rank in [{self.ranks[0]:g}, {self.ranks[1]:g})"
        names = tuple(
            f"|{a} - {b}|{inside} <= {self.kappa:g}" for a, b in combinations(self.rates.names, 2)
        )
        offset = np.full(len(names), self.kappa)
        return RankGaps(self.rates, self.ranks, offset, self.n_auxiliary, names)

    @property
    def gap_bounds(self) -> Array:
        """Kappa, for every threshold."""
        return np.full(self.n_auxiliary, self.kappa)

    def gap_of(self, statistics: Array) -> Array:
        """Return, for every threshold, how far apart the groups' rates are, in units of kappa."""
        rates = statistics.reshape(self.rates.n_statistics, -1)
        return np.ptp(rates, axis=0) / (self.ranks[1] - self.ranks[0])
