"""Where shards are, and sums over all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fairconstrained.shards.rows import Shard
from fairconstrained.shards.sums import Sums


class Shards(Protocol):
    """Where the rows are, and who computes sums over them."""

    @property
    def n_rows(self) -> int:
        """The number of rows in all shards."""

    def gather(self, function: Callable[..., Sums], *arguments: Any) -> list[Sums]:
        """Return ``function(shard, *arguments)`` of every shard, in the order of the shards."""


@dataclass(frozen=True, eq=False)
class LocalShards:
    """Shards in the memory of this process.

    Parameters
    ----------
    shards : sequence of Shard
        The rows.
    n_threads : int, default=1
        How many shards are computed at a time.
    """

    shards: Sequence[Shard]
    n_threads: int = 1

    @property
    def n_rows(self) -> int:
        """The number of rows in all shards."""
        return sum(shard.n_rows for shard in self.shards)

    def gather(self, function: Callable[..., Sums], *arguments: Any) -> list[Sums]:
        """Return ``function(shard, *arguments)`` of every shard, in the order of the shards."""
        if self.n_threads == 1:
            return [function(shard, *arguments) for shard in self.shards]
        with ThreadPoolExecutor(self.n_threads) as threads:
            return list(threads.map(lambda shard: function(shard, *arguments), self.shards))


def total(shards: Shards, function: Callable[..., Sums], *arguments: Any) -> Sums:
    """Return the sum over all shards of ``function(shard, *arguments)``, array by array."""
    parts = shards.gather(function, *arguments)
    return tuple(np.sum(arrays, axis=0) for arrays in zip(*parts, strict=True))
