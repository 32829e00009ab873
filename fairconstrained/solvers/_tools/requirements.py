"""What a solver needs and a problem does not have, as a sentence for the user."""

from __future__ import annotations

from collections.abc import Sequence

_FUNCTIONS = {
    "smooth": "smooth functions",
    "weakly_convex": "weakly convex functions",
    "smoothable": "functions whose kinks are known",
    "difference_of_convex": "functions that are differences of convex functions",
}


def refusal(solver: str, missing: Sequence[str], able: Sequence[str]) -> str:
    """Return the message of a solver that cannot solve a problem.

    Parameters
    ----------
    solver : str
        The solver.
    missing : sequence of str
        The properties that the problem lacks, at least one.
    able : sequence of str
        The names of the solvers that can solve it.

    Examples
    --------
    >>> from fairconstrained.solvers._tools.requirements import refusal
    >>> print(refusal("ExactPenalty()", ["smooth"], ["ssg"]))  # doctest: +NORMALIZE_WHITESPACE
    ExactPenalty() needs smooth functions: change the surrogate, the loss or the penalty, or use
    one of the solvers ssg.
    """
    others = f"use one of the solvers {', '.join(able)}."
    if "batchable" in missing:
        refused = "draws batches of rows, which these data or this constraint do not allow"
        return f"{solver} {refused}: {others}"
    needs = " and ".join(_FUNCTIONS.get(name, name.replace("_", " ")) for name in missing)
    return f"{solver} needs {needs}: change the surrogate, the loss or the penalty, or {others}"
