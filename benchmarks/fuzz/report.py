"""The table of a run: fits, and failures by class, estimator, constraint and solver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from benchmarks.fuzz.oracle import Verdict


class Tally:
    """Counts of fits and failures."""

    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []

    def add(self, verdict: Verdict) -> None:
        """Count a case."""
        self.verdicts.append(verdict)

    @property
    def fits(self) -> int:
        """How many fits were made."""
        return sum(one.fits for one in self.verdicts)

    @property
    def failed(self) -> list[Verdict]:
        """The cases with failures."""
        return [one for one in self.verdicts if one.failures]

    def by_class(self) -> Counter[str]:
        """Return how many cases show each class of failure."""
        return Counter(kind for one in self.verdicts for kind in {f.kind for f in one.failures})

    def table(self) -> str:
        """Return everything as text."""
        refused = sum(one.refused for one in self.verdicts)
        lines = [
            f"{len(self.verdicts)} cases, {self.fits} fits, {len(self.failed)} cases with failures"
            f", {refused} refused by the solver or without its library"
        ]
        lines += [f"  {kind:<32}{count:>6}" for kind, count in self.by_class().most_common()]
        local = [f"{one.seed}:{one.index}" for one in self.verdicts if one.local]
        if local:
            lines += [f"{len(local)} cases with several local solutions: {', '.join(local)}"]
        lines += ["", f"{'check':<32}{'made':>8}{'failed':>8}"]
        checked = Counter(name for one in self.verdicts for name, _ in one.checked)
        failed = Counter(name for one in self.verdicts for name, wrong in one.checked if wrong)
        lines += [f"{name:<32}{n:>8}{failed[name]:>8}" for name, n in checked.most_common()]
        keys: dict[str, Callable[[Verdict], str]] = {
            "estimator": lambda one: one.estimator,
            "constraint": lambda one: one.constraint,
            "solver": lambda one: one.solver,
        }
        for name, key in keys.items():
            lines += ["", *_lines(name, self.verdicts, key)]
        return "\n".join(lines)


def _lines(name: str, verdicts: Iterable[Verdict], key: Callable[[Verdict], str]) -> Iterable[str]:
    """Yield a line for every value of a key; several constraints are one line."""
    fits: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for one in verdicts:
        value = "(two constraints)" if "+" in key(one) else key(one)
        fits[value] += one.fits
        failed[value] += bool(one.failures)
        seconds[value] += one.seconds  # type: ignore[assignment]
    yield f"{name:<32}{'fits':>8}{'failed':>8}{'seconds per fit':>18}"
    for value, count in fits.most_common():
        yield f"{value:<32}{count:>8}{failed[value]:>8}{seconds[value] / max(count, 1):>18.2f}"


def describe(verdict: Verdict) -> str:
    """Return the failures of a case with what reproduces them."""
    lines = [f"FAILURE {verdict.seed}:{verdict.index} ({verdict.seconds:.1f} CPU seconds)"]
    lines += [f"  {one.kind}: {one.text}" for one in verdict.failures]
    return "\n".join([*lines, *(f"    {line}" for line in verdict.snippet.splitlines())])
