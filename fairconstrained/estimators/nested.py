"""What all estimators share: parameters of constraints such as ``constraint__ratio=0.9``, links."""

from __future__ import annotations

from collections import defaultdict
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
                known = _resolved(entry)
                nested = {} if known is None else known.get_params(deep=True)
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
        nested = {name: value for name, value in params.items() if name.startswith(f"{_PREFIX}__")}
        super().set_params(**{name: params[name] for name in params if name not in nested})
        if nested:
            options = {name.removeprefix(f"{_PREFIX}__"): nested[name] for name in nested}
            self.constraint = _changed(self.constraint, options)
        return self


def _entries(constraint: ConstraintLike) -> list[tuple[str, object]]:
    """Return the constraints with the prefixes of their parameters."""
    if isinstance(constraint, list | tuple):
        return [(f"{_PREFIX}__{k}", one) for k, one in enumerate(constraint)]
    return [(_PREFIX, constraint)]


def _resolved(entry: object) -> Constraint | None:
    """Return a constraint given by its name or as an object, None for anything else."""
    if isinstance(entry, str) and entry in CONSTRAINTS:
        return CONSTRAINTS[entry]()
    return entry if isinstance(entry, Constraint) else None


def _changed(constraint: ConstraintLike, options: dict[str, Any]) -> ConstraintLike:
    """Return constraints with other parameters; a list is not changed but copied."""
    if not isinstance(constraint, list | tuple):
        return _with_parameters(_PREFIX, constraint, options)
    entries = list(constraint)
    nested: dict[int, dict[str, Any]] = defaultdict(dict)
    for name, value in options.items():
        position, _, parameter = name.partition("__")
        if not (position.isdecimal() and int(position) < len(entries)):
            raise ValueError(
                f"Invalid parameter 'constraint__{name}': constraint is a list of {len(entries)}, "
                "whose entries are called constraint__0, constraint__1, ..., and their parameters "
                "constraint__0__kappa and so on."
            )
        if parameter:
            nested[int(position)][parameter] = value
        else:
            entries[int(position)] = value
    for k, changes in nested.items():
        entries[k] = _with_parameters(f"{_PREFIX}__{k}", entries[k], changes)
    return type(constraint)(entries)


def _with_parameters(prefix: str, entry: object, options: dict[str, Any]) -> Constraint:
    """Return a constraint with other parameters."""
    known = _resolved(entry)
    if known is None:
        raise ValueError(
            f"{prefix}__{next(iter(options))} is a parameter of a constraint, and {prefix}="
            f"{entry!r} is not a constraint: pass its name or an object."
        )
    return known.set_params(**options)


DOCUMENTATION = "https://fairconstrained.github.io/fairconstrained"


class DocumentedEstimator(BaseEstimator):
    """An estimator of this library whose HTML representation links to our documentation."""

    _doc_link_module = "fairconstrained"
    _doc_link_template = f"{DOCUMENTATION}/generated/fairconstrained.{{estimator_name}}.html"
