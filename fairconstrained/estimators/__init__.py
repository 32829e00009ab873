"""The classifiers, and the fit that they share with paths and searches.

A model and its estimator belong here; what compares several fits belongs in ``model_selection``.
What all estimators share is in this file: parameters of constraints such as
``constraint__ratio=0.9``, and links to the documentation.
"""

import sys
from types import ModuleType
from typing import Any, Self

from sklearn.base import BaseEstimator

from fairconstrained.constraints import CONSTRAINTS, Constraint, ConstraintLike

_PREFIX = "constraint"


class ConstraintParameters(BaseEstimator):
    """An estimator with a parameter `constraint`, whose own parameters are nested parameters.

    A constraint may be given by its name, by an object or as one of a list. In each case
    ``constraint__kappa`` (in a list: ``constraint__0__kappa``, and ``constraint__0`` for the entry
    itself) is a parameter of the estimator, for `set_params` and for grids of searches. Setting a
    parameter of a constraint that is given by its name puts an object in the place of the name.
    """

    constraint: ConstraintLike

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether parameters of constraints, solvers and other objects are included.

        Returns
        -------
        params : dict
            The parameters by name.
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for prefix, entry in _entries(self.constraint):
                if prefix != _PREFIX:
                    params[prefix] = entry
                resolved = _resolved(entry)
                nested = {} if resolved is None else resolved.get_params(deep=True)
                params |= {f"{prefix}__{name}": value for name, value in nested.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params : object
            Parameters by name; those of constraints as ``constraint__ratio=0.9``, or
            ``constraint__0__ratio=0.9`` where `constraint` is a list.

        Returns
        -------
        self : estimator
            This estimator.

        Raises
        ------
        ValueError
            If there is no such parameter; the message lists the valid ones.
        """
        nested = sorted(name for name in params if name.startswith(f"{_PREFIX}__"))
        super().set_params(**{name: params[name] for name in params if name not in nested})
        entries = dict(_entries(self.constraint))
        for name in nested:  # an entry of a list comes before its parameters
            prefix = next((key for key in entries if f"{name}__".startswith(f"{key}__")), None)
            if prefix is None:
                raise ValueError(
                    f"Invalid parameter {name!r}: constraint is a list of {len(entries)}, whose "
                    "entries are called constraint__0, constraint__1, ..., and their parameters "
                    "constraint__0__kappa and so on."
                )
            value = params[name]
            if name != prefix:
                resolved = _resolved(entries[prefix])
                if resolved is None:
                    raise ValueError(
                        f"{name} is a parameter of a constraint, and {prefix}="
                        f"{entries[prefix]!r} is not a constraint: pass its name or an object."
                    )
                value = resolved.set_params(**{name.removeprefix(f"{prefix}__"): value})
            entries[prefix] = value
        if nested:
            values: list[Any] = list(entries.values())
            given: Any = self.constraint
            self.constraint = type(given)(values) if isinstance(given, list | tuple) else values[0]
        return self


def _entries(constraint: ConstraintLike) -> list[tuple[str, object]]:
    if isinstance(constraint, list | tuple):
        return [(f"{_PREFIX}__{k}", entry) for k, entry in enumerate(constraint)]
    return [(_PREFIX, constraint)]


def _resolved(entry: object) -> Constraint | None:
    """Return a constraint given by its name or as an object, None for anything else."""
    if isinstance(entry, str) and entry in CONSTRAINTS:
        return CONSTRAINTS[entry]()
    return entry if isinstance(entry, Constraint) else None


DOCUMENTATION = "https://fairconstrained.github.io/fairconstrained"


class DocumentedEstimator(BaseEstimator):
    """An estimator of this library whose HTML representation links to our documentation."""

    _doc_link_module = "fairconstrained"
    _doc_link_template = f"{DOCUMENTATION}/generated/fairconstrained.{{estimator_name}}.html"


# Pickles and skops files of version 0.2 name these modules, and fail with the name of the one here.
_SAVED = (
    "estimators.boosting.classifier estimators.linear.logistic estimators.linear.neyman_pearson "
    "estimators.linear.svm estimators.network.classifier estimators.score_thresholds.classifier "
    "estimators.ranking.boosted estimators.ranking.ranker reporting._verdict reporting.rankers"
)
_OF_VERSION_0_2 = ModuleType(
    "of fairconstrained 0.2, whose files do not load: fit again, or use to_sklearn() with 0.2"
)
sys.modules.update({f"fairconstrained.{name}": _OF_VERSION_0_2 for name in _SAVED.split()})
