"""The partitions of collections that go together: features, labels, groups and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairconstrained.utils.extras import import_extra


def is_collection(value: object) -> bool:
    """Return whether a value is a dask array, dataframe or series."""
    return type(value).__module__.split(".")[0].startswith("dask") and hasattr(value, "dask")


def is_frame(value: object) -> bool:
    """Return whether a value is a dask dataframe or series."""
    return is_collection(value) and hasattr(value, "npartitions") and hasattr(value, "divisions")


@dataclass(frozen=True, eq=False)
class Partitions:
    """Delayed partitions of collections, in the order of the rows.

    Attributes
    ----------
    parts : list of tuple of Delayed
        For every partition the parts of the collections; None for a collection that is None.
    """

    parts: list[tuple[Any, ...]]

    def __len__(self) -> int:
        """Return the number of partitions."""
        return len(self.parts)

    @classmethod
    def of(cls, **collections: Any) -> Partitions:
        """Return the partitions of collections by the names of the arguments, the first one first.

        Raises
        ------
        TypeError
            If an argument is not a dask collection.
        ValueError
            If two collections differ in the number or in the lengths of their partitions.
        """
        first, X = next(iter(collections.items()))
        columns: list[list[Any] | None] = []
        for name, values in collections.items():
            if values is None:
                columns.append(None)
                continue
            if not is_collection(values):
                raise TypeError(
                    f"{name} must be a dask array, dataframe or series with the partitions of "
                    f"{first}; got {type(values).__name__}. For data in memory use the estimator "
                    "of the same name in fairconstrained."
                )
            columns.append(_delayed(name, values, first, X))
        n_parts = len(columns[0] or ())
        parts = [tuple(None if c is None else c[k] for c in columns) for k in range(n_parts)]
        return cls(parts)


def _delayed(name: str, values: Any, first: str, X: Any) -> list[Any]:
    """Return the partitions of a collection: those of the first one, where lengths are known."""
    import_extra("dask", "dask", "fairconstrained.dask")
    if is_frame(values):
        # The optimised graph would join small partitions.
        found = values.to_delayed(optimize_graph=False)
    else:
        if values.ndim == 2 and len(values.chunks[1]) > 1:
            values = values.rechunk({1: -1})
        known = not is_frame(X) and _known(values.chunks[0]) and _known(X.chunks[0])
        if known and values.shape[0] != X.shape[0]:
            raise ValueError(f"{name} has {values.shape[0]} rows, {first} has {X.shape[0]}.")
        if known and values.chunks[0] != X.chunks[0]:
            values = values.rechunk({0: X.chunks[0]})
        found = values.to_delayed().ravel().tolist()
    wanted = X.npartitions if is_frame(X) else len(X.chunks[0])
    if len(found) != wanted:
        raise ValueError(
            f"{name} has {len(found)} partitions, {first} has {wanted}: rows are matched by "
            f"partition. Make both from one collection, or repartition {name} like {first}."
        )
    return list(found)


def _known(lengths: Sequence[float]) -> bool:
    """Return whether the lengths of chunks are known, not nan."""
    return all(length == length for length in lengths)
