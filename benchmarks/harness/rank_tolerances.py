"""The tolerances of the baselines of IDCA's experiments (appendices D.3.2 and D.4)."""

from __future__ import annotations

from collections.abc import Mapping

Levels = Mapping[str, tuple[float, ...]]

# For each baseline, the levels of partial demographic parity and of weak partial parity.
TOLERANCES: dict[str, dict[str, Levels]] = {
    "group AUC": {
        "partial_parity": {
            "a9a": (0.7, 1, 2, 3.5),
            "bank": (0.1, 0.3, 0.56, 0.7, 1),
            "law_school": (0.5, 0.75, 1.15, 1.8, 2.7),
        },
        "weak_partial_parity": {
            "a9a": (0.3, 0.4, 0.5, 0.7, 1),
            "bank": (0.06, 0.5, 2.35, 2.62, 3.28, 4),
            "law_school": (1, 3, 4, 5, 6, 10),
        },
    },
    "inter-group": {
        "partial_parity": {
            "a9a": (1.5, 3, 3.5, 6),
            "bank": (1.5, 1.8, 2, 3),
            "law_school": (0.4, 1.6, 2.4, 4),
        },
        "weak_partial_parity": {
            "a9a": (0.9, 1.2, 1.5, 2, 2.7),
            "bank": (0.3, 1, 5, 5.4, 6),
            "law_school": (2, 6.5, 8, 9, 10, 15),
        },
    },
    "intra-group": {
        "partial_parity": {"a9a": (3, 5, 8), "bank": (2, 3, 4), "law_school": (3, 5, 10)},
        "weak_partial_parity": {
            "a9a": (0.7, 1, 1.3, 1.7, 2.2),
            "bank": (0.1, 0.3, 0.42, 0.5, 1, 2.5),
            "law_school": (0.1, 0.8, 2, 3.5, 10),
        },
    },
    "regularisation": {
        "partial_parity": {
            "a9a": (0.2, 0.3, 0.37, 1),
            "bank": (0.4, 0.405, 0.41, 1, 1.5),
            "law_school": (0.39, 0.4, 0.5, 0.8, 1.5),
        },
        "weak_partial_parity": {
            "a9a": (0.13, 0.17, 0.2, 0.23, 1),
            "bank": (0.005, 0.015, 0.018, 0.1, 2),
            "law_school": (0.001, 0.01, 1),
        },
    },
}
