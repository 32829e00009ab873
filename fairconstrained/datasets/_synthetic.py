"""Synthetic data with a known demographic parity gap."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse as sp
from scipy.special import expit
from scipy.stats import norm
from sklearn.utils import check_random_state

from fairconstrained.datasets._checks import check_number
from fairconstrained.utils.validation import check_seed, check_switch

__all__ = ["make_biased_classification"]


def make_biased_classification(
    n_samples: int = 1000,
    n_features: int = 10,
    *,
    n_groups: int = 2,
    gap: float = 0.2,
    n_informative: int | None = None,
    class_sep: float = 2.0,
    flip_y: float = 0.0,
    sparse: bool = False,
    return_coef: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Any, ...]:
    r"""Generate binary classification data with a known demographic parity gap.

    Group :math:`g` of :math:`G` has the positive rate
    :math:`r_g = 1/2 - \mathrm{gap}/2 + \mathrm{gap} \cdot g / (G - 1)`. With a unit vector
    :math:`w`, :math:`z \sim N(0, I)`, :math:`c` = ``class_sep`` and :math:`f` = ``flip_y``,

    .. math:: x = z + \Phi^{-1}(r_g) w, \qquad P(y = 1 \mid x) = f + (1 - 2 f) \, \sigma(c w^T x).

    In group :math:`g` the score :math:`w^T x` has the distribution :math:`N(\Phi^{-1}(r_g), 1)`.
    The selection rate of the Bayes classifier, which predicts 1 if :math:`w^T x > 0`, is therefore
    :math:`r_g`. Given :math:`x`, the label :math:`y` is independent of the group.

    Parameters
    ----------
    n_samples, n_features, n_groups : int, default=1000, 10, 2
        The shape of ``X``, and the number of groups. The sizes of the groups differ by at most one.
    gap : float, default=0.2
        The difference between the selection rates of the Bayes classifier in the last and in the
        first group.
    n_informative : int, default=None
        The number of features that the label depends on. They are the first columns of ``X``. None
        means 5, or ``n_features`` if that is smaller.
    class_sep, flip_y : float, default=2.0, 0.0
        The steepness of the logistic model (with 0 the labels are random), and the probability that
        a label is flipped, below 1/2.
    sparse, return_coef : bool, default=False
        Return ``X`` as a CSR matrix, with 5% of the uninformative entries non-zero; also return
        ``w``.
    random_state : int, RandomState or None, default=None
        The seed of the random number generator.

    Returns
    -------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        The features, without the group.
    y, sensitive_features : ndarray of shape (n_samples,)
        The labels, 0 and 1, and the groups, 0 to ``n_groups - 1``.
    coef : ndarray of shape (n_features,)
        The vector ``w``; only with ``return_coef=True``.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> X, y, groups, w = make_biased_classification(gap=0.4, return_coef=True, random_state=0)
    >>> [round(float((X[groups == g] @ w > 0).mean()), 1) for g in (0, 1)]
    [0.3, 0.7]
    """
    for name, value in (("sparse", sparse), ("return_coef", return_coef)):
        check_switch(name, value)
    check_seed(random_state)
    check_number("n_samples", n_samples, Integral, 1, np.inf)
    check_number("n_features", n_features, Integral, 1, np.inf)
    check_number("n_groups", n_groups, Integral, 2, np.inf)
    check_number("gap", gap, Real, 0, 1)
    used = min(5, n_features) if n_informative is None else n_informative
    check_number("n_informative", used, Integral, 1, n_features + 1)
    check_number("class_sep", class_sep, Real, 0, np.inf)
    check_number("flip_y", flip_y, Real, 0, 0.5)
    # A Generator is much faster than the RandomState that seeds it.
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))
    groups = rng.permutation(np.arange(n_samples) % n_groups)
    coef = np.zeros(n_features)
    coef[:used] = rng.uniform(0.5, 1.5, used) * rng.choice([-1.0, 1.0], used)
    coef /= np.linalg.norm(coef)
    shifts = norm.ppf(np.linspace(0.5 - gap / 2, 0.5 + gap / 2, n_groups))
    informative = rng.standard_normal((n_samples, used)) + np.outer(shifts[groups], coef[:used])
    probability = flip_y + (1 - 2 * flip_y) * expit(class_sep * (informative @ coef[:used]))
    y = (rng.random(n_samples) < probability).astype(int)
    X = _with_noise(informative, n_features - used, sparse, rng)
    return (X, y, groups, coef) if return_coef else (X, y, groups)


def _with_noise(informative: np.ndarray, extra: int, sparse: bool, rng: np.random.Generator) -> Any:
    shape = (len(informative), extra)
    if not sparse:
        return np.hstack([informative, rng.standard_normal(shape)])
    noise = sp.random_array(shape, density=0.05, rng=rng, data_sampler=rng.standard_normal)
    return sp.csr_matrix(sp.hstack([sp.csr_array(informative), noise], format="csr"))
