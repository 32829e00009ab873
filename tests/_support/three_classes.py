"""Rows of three classes whose scores depend on the group."""

import numpy as np


def three_classes(n, n_groups=2, seed=0):
    """Return features, labels 0 to 2 and groups."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, n)
    X = rng.standard_normal((n, 4))
    X[:, 0] += 0.9 * (groups % 2)
    scores = X @ rng.normal(scale=1.5, size=(4, 3)) + rng.gumbel(size=(n, 3))
    return X, scores.argmax(axis=1), groups
