"""Generated data with a known unfairness."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse as sp
from scipy.special import expit
from scipy.stats import norm
from sklearn.utils import check_random_state

from fairconstrained.utils.validation import check_seed, check_switch

__all__ = ["make_biased_classification"]


def _check_number(name: str, value: object, kind: Any, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value < high:
        what = "an integer" if kind is Integral else "a number"
        raise ValueError(f"{name} must be {what} in [{low}, {high}); got {value!r}.")


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
    r"""Generate two classes whose best classifier has a known demographic parity gap.

    Group :math:`g` of :math:`G` has the positive rate
    :math:`r_g = 1/2 - \mathrm{gap}/2 + \mathrm{gap} \cdot g / (G - 1)`. With a unit vector
    :math:`w`, :math:`z \sim N(0, I)`, :math:`c` = ``class_sep`` and :math:`f` = ``flip_y``,

    .. math:: x = z + \Phi^{-1}(r_g) w, \qquad P(y = 1 \mid x) = f + (1 - 2 f) \, \sigma(c w^T x).

    The score :math:`w^T x` is :math:`N(\Phi^{-1}(r_g), 1)` in group :math:`g`, so that the Bayes
    decision :math:`w^T x > 0` is positive there with probability exactly :math:`r_g`. Given
    :math:`x`, the group says nothing more about :math:`y`.

    Parameters
    ----------
    n_samples, n_features, n_groups : int, default=1000, 10, 2
        Shape of ``X``; number of groups, the sizes of which differ by at most one.
    gap : float, default=0.2
        Bayes decisions' rate in the last group, the most favoured, less that in the first.
    n_informative : int, default=None
        Features on which the label depends, the first of ``X``; None is 5, or fewer if need be.
    class_sep, flip_y : float, default=2.0, 0.0
        Steepness of the logistic model (0: labels are coin flips); probability, below 1/2, that
        a label is flipped.
    sparse, return_coef : bool, default=False
        Return ``X`` as CSR, with 5% of the uninformative entries set; return ``w`` as well.
    random_state : int, RandomState or None, default=None
        Seed of the generator.

    Returns
    -------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        The features; the group is not among them.
    y, sensitive_features : ndarray of shape (n_samples,)
        Labels 0 and 1; groups 0 to ``n_groups - 1``.
    coef : ndarray of shape (n_features,)
        The vector ``w``, only with ``return_coef=True``.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> X, y, groups, w = make_biased_classification(gap=0.4, return_coef=True, random_state=0)
    >>> [round(float((X[groups == g] @ w > 0).mean()), 1) for g in (0, 1)]
    [0.3, 0.7]
    """
    for name, value in (("sparse", sparse), ("return_coef", return_coef)):
        check_switch(name, value)
    check_seed(random_state)
    _check_number("n_samples", n_samples, Integral, 1, np.inf)
    _check_number("n_features", n_features, Integral, 1, np.inf)
    _check_number("n_groups", n_groups, Integral, 2, np.inf)
    _check_number("gap", gap, Real, 0, 1)
    used = min(5, n_features) if n_informative is None else n_informative
    _check_number("n_informative", used, Integral, 1, n_features + 1)
    _check_number("class_sep", class_sep, Real, 0, np.inf)
    _check_number("flip_y", flip_y, Real, 0, 0.5)
    # A Generator is much faster than the RandomState it is seeded from.
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))
    groups = rng.permutation(np.arange(n_samples) % n_groups)
    coef = np.zeros(n_features)
    coef[:used] = rng.uniform(0.5, 1.5, used) * rng.choice([-1.0, 1.0], used)
    coef /= np.linalg.norm(coef)
    shifts = norm.ppf(np.linspace(0.5 - gap / 2, 0.5 + gap / 2, n_groups))
    informative = rng.standard_normal((n_samples, used)) + np.outer(shifts[groups], coef[:used])
    chance = flip_y + (1 - 2 * flip_y) * expit(class_sep * (informative @ coef[:used]))
    y = (rng.random(n_samples) < chance).astype(int)
    X = _with_noise(informative, n_features - used, sparse, rng)
    return (X, y, groups, coef) if return_coef else (X, y, groups)


def _with_noise(informative: np.ndarray, extra: int, sparse: bool, rng: np.random.Generator) -> Any:
    shape = (len(informative), extra)
    if not sparse:
        return np.hstack([informative, rng.standard_normal(shape)])
    noise = sp.random_array(shape, density=0.05, rng=rng, data_sampler=rng.standard_normal)
    return sp.csr_matrix(sp.hstack([sp.csr_array(informative), noise], format="csr"))
