"""Who computes: the workers of a client, or the threads of this process."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any
from uuid import uuid4

import numpy as np

from fairconstrained.dask._reader import Reader
from fairconstrained.dask._rows import Totals, make_shard, on_shards, packed, prepare
from fairconstrained.shards.sums import LocalShards, Shards, Sums
from fairconstrained.utils.registry import import_extra
from fairconstrained.utils.typing import Array

_KEPT_BYTES = 1 << 20  # of results of past rounds
_KEPT_ROUNDS = 8  # dask computes them again as well if their worker ends


Partitions = Sequence[tuple[Any, ...]]  # the parts of collections, delayed
Part = tuple[list[Any], list[Totals]]  # prepared partitions, or references, and their totals


def _key(function: Callable[..., Any]) -> str:
    """Return the key of a new task; a dashboard shows the name of the function."""
    name = getattr(function, "__name__", "part").strip("_").replace("_", "-")
    return f"fairconstrained-{name}-{uuid4().hex}"


class Threads:
    """The threads of this process, with what is used of a distributed client."""

    def compute(self, tasks: Sequence[Any]) -> Sequence[Any]:
        """Return the results of delayed calls, by dask's threaded scheduler."""
        dask = import_extra("dask", "dask", "fairconstrained.dask")
        return dask.compute(*tasks, scheduler="threads")

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Return the result of a function; the options are those of a client."""
        return function(*arguments)

    def gather(self, results: Sequence[Any]) -> Sequence[Any]:
        """Return the results."""
        return results


@dataclass(frozen=True, eq=False)
class Workers:
    """What prepares partitions, keeps shards and computes sums over them.

    Parameters
    ----------
    client : distributed.Client or Threads
        Who computes.
    disk : {"auto"} or bool, default="auto"
        Whether features are kept in a file on the worker's disk and read in blocks. "auto" does
        that where all features need more than half the memory of the workers; threads do not.
    """

    client: Any
    disk: str | bool = "auto"

    def map(self, function: Callable[..., Any], partitions: Partitions, *arguments: Any) -> list:
        """Return ``function(*arguments, *partition)`` of every partition."""
        return list(self.client.gather(self._submitted(function, partitions, *arguments)))

    def prepare(self, reader: Reader, partitions: Partitions) -> Part:
        """Return the prepared partitions and their totals."""
        return self._parts(self._submitted(prepare, partitions, reader))[0]

    def _submitted(
        self, function: Callable[..., Any], partitions: Partitions, *arguments: Any
    ) -> Sequence[Any]:
        """Return futures of ``function(*arguments, *partition)``."""
        dask = import_extra("dask", "dask", "fairconstrained.dask")
        tasks = [
            dask.delayed(function, pure=False)(*arguments, *parts, dask_key_name=_key(function))
            for parts in partitions
        ]
        return self.client.compute(tasks)

    def _each(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Return futures of a function of each of several futures, with arguments of its own."""
        return [
            self.client.submit(function, *row, pure=False, key=_key(function))
            for row in zip(*columns, strict=True)
        ]

    def _parts(self, futures: Sequence[Any], n_parts: int = 1) -> list[Part]:
        """Return futures of parts, and their totals, from those of both, part after part."""
        items = [self._each(itemgetter(k), futures) for k in range(2 * n_parts)]
        return [(items[2 * k], list(self.client.gather(items[2 * k + 1]))) for k in range(n_parts)]

    def changed(
        self,
        function: Callable[..., Any],
        prepared: Sequence[Any],
        *columns: Sequence[Any],
        n_parts: int = 1,
    ) -> list[Part]:
        """Return parts of prepared partitions, or partitions with other features.

        Parameters
        ----------
        function : callable
            Called with a prepared partition and its arguments. It returns a prepared partition and
            its totals for each of the parts, one after the other.
        prepared : sequence
            The partitions, or futures of them.
        *columns : sequence
            Of every partition, the arguments.
        n_parts : int, default=1
            How many parts the function makes of a partition.
        """
        return self._parts(self._each(function, prepared, *columns), n_parts)

    def shards(self, part: Part, atoms: Sequence[Array]) -> Shards:
        """Return the shards made of prepared partitions and the positions of their atoms.

        Partitions without rows make none.
        """
        folder = "worker" if self._on_disk(part[1]) else None
        chosen = [one for one in zip(*part, atoms, strict=True) if one[1].moments]
        shards = self._each(
            make_shard, *([one[k] for one in chosen] for k in (0, 2)), [folder] * len(chosen)
        )
        if isinstance(self.client, Threads):
            return LocalShards(shards, n_threads=min(len(shards), len(os.sched_getaffinity(0))))
        return RemoteShards(self.client, shards, sum(int(one[1].counts.sum()) for one in chosen))

    def _on_disk(self, totals: Sequence[Totals]) -> bool:
        if isinstance(self.client, Threads) or self.disk != "auto":
            return self.disk != "auto" and bool(self.disk)
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        memory = sum(worker["memory_limit"] for worker in workers)
        return bool(memory) and 2 * sum(one.n_bytes for one in totals) > memory


@dataclass(frozen=True, eq=False)
class RemoteShards(Shards):
    """Shards that are results of tasks on workers; a shard that is lost is made again by dask.

    Parameters
    ----------
    client : distributed.Client
        The client.
    futures : list of Future
        The shards.
    n_rows : int
        The number of rows in all of them.
    """

    client: Any
    futures: list[Any]
    n_rows: int
    _places: dict[str, list[int]] = field(default_factory=dict, init=False, repr=False)
    _done: list[Any] = field(default_factory=list, init=False, repr=False)

    def gather(self, function: Callable[..., Sums], *request: Any) -> list[Sums]:
        """Return :meth:`Shard.total` of every shard: one task per worker.

        A worker that ends takes its shards and tasks with it; dask computes both again elsewhere.
        A task reports where it ran. Where the shards are is asked again when that is not where they
        were.
        """
        places, message = self._placed(), packed((function, *request))
        tasks = [
            self.client.submit(
                on_shards,
                message,
                *(self.futures[k] for k in positions),
                pure=False,
                key=_key(function),
                workers=[worker] if worker in self._places else None,
                allow_other_workers=worker in self._places,
            )
            for worker, positions in places.items()
        ]
        results, by_shard = self.client.gather(tasks), dict[int, Sums]()
        for positions, (_, sums) in zip(places.values(), results, strict=True):
            by_shard.update(zip(positions, sums, strict=True))
        if [ran for ran, _ in results] != list(places):
            self._places.clear()
        self._release_later(tasks, [sums for _, sums in results])
        return [by_shard[k] for k in range(len(self.futures))]

    def _placed(self) -> dict[str, list[int]]:
        """Return the shards of every worker; a shard that is nowhere is on its own."""
        if self._places:
            return self._places
        owners, places = self.client.who_has(self.futures), defaultdict[str, list[int]](list)
        for k, future in enumerate(self.futures):
            workers = sorted(owners.get(future.key, ()))
            places[workers[0] if workers else f"unknown {k}"].append(k)
        if all(owners.get(future.key) for future in self.futures):
            self._places.update(places)
        return places

    def _release_later(self, tasks: Sequence[Any], results: Sequence[list[Sums]]) -> None:
        """Release the results of some rounds together.

        The client of dask sends at most one message in 10 ms. One that releases a result would make
        the task of the next round wait.
        """
        size = sum(array.nbytes for sums in results for one in sums for array in one)
        self._done.extend(tasks)
        n_rounds = len(self._done) // len(tasks)
        if n_rounds * size > _KEPT_BYTES or n_rounds >= _KEPT_ROUNDS:
            self._done.clear()


def workers_of(client: Any, disk: str | bool) -> Workers:
    """Return the workers of a client, or those of the default client, or threads.

    Parameters
    ----------
    client : distributed.Client or None
        The client that an estimator was given.
    disk : {"auto"} or bool
        See :class:`Workers`.

    Raises
    ------
    ValueError
        If `disk` is neither "auto" nor a switch.
    """
    if not (isinstance(disk, bool | np.bool_) or (isinstance(disk, str) and disk == "auto")):
        raise ValueError(f"disk must be True, False or 'auto'; got {disk!r}.")
    if client is not None:
        return Workers(client, disk)
    distributed = import_extra("distributed", "dask", "fairconstrained.dask")
    try:
        return Workers(distributed.default_client(), disk)
    except ValueError:
        return Workers(Threads())
