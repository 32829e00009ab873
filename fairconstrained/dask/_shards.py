"""Who computes: the workers of a client, or the threads of this process."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Protocol
from uuid import uuid4

import numpy as np

from fairconstrained.dask._messages import packed
from fairconstrained.dask._partitions import Partitions
from fairconstrained.dask._reader import Reader
from fairconstrained.dask._rows import (
    Prepared,
    Summary,
    Totals,
    make_shard,
    on_shards,
    prepare,
    prepare_with_summary,
)
from fairconstrained.shards.sums import LocalShards, Shards, Sums
from fairconstrained.utils.extras import import_extra
from fairconstrained.utils.typing import Array

_NAME = "fairconstrained"
_KEPT_BYTES = 1 << 20  # of results of past rounds
_KEPT_ROUNDS = 8  # dask computes them again as well if their worker ends


Part = tuple[list[Any], list[Totals]]  # prepared partitions, or references, and their totals


def task_name(function: Callable[..., Any]) -> str:
    """Return the name by which a dashboard shows the tasks of a function."""
    return f"{_NAME}-{function.__name__.strip('_').replace('_', '-')}"


class Workers(Protocol):
    """What prepares partitions, keeps shards and computes sums over them."""

    def prepare(self, reader: Reader, partitions: Partitions) -> tuple[list[Any], list[Summary]]:
        """Return the prepared partitions, or references to them, and their summaries."""

    def changed(
        self,
        function: Callable[..., Any],
        prepared: Sequence[Any],
        arguments: Sequence[tuple[Any, ...]],
        n_parts: int = 1,
    ) -> list[Part]:
        """Return parts of prepared partitions, or partitions with other features.

        Parameters
        ----------
        function : callable
            Called with a prepared partition and its arguments. It returns a prepared partition and
            its totals for each of the parts, one after the other.
        prepared : sequence
            The partitions, or references to them.
        arguments : sequence of tuple
            Of every partition.
        n_parts : int, default=1
            How many parts the function makes of a partition.
        """

    def shards(
        self, prepared: Sequence[Any], atoms: Sequence[Array], totals: Sequence[Totals]
    ) -> Shards:
        """Return the shards made of prepared partitions and their atoms' positions."""

    def map(self, function: Callable[..., Any], partitions: Partitions, *arguments: Any) -> list:
        """Return ``function(*arguments, *partition)`` of every partition."""


@dataclass(frozen=True, eq=False)
class Threads:
    """The threads of this process, by dask's threaded scheduler; shards are in its memory."""

    def map(self, function: Callable[..., Any], partitions: Partitions, *arguments: Any) -> list:
        """Return ``function(*arguments, *partition)`` of every partition."""
        dask = import_extra("dask", "dask", "fairconstrained.dask")
        task = dask.delayed(function, pure=False)
        tasks = [task(*arguments, *parts) for parts in partitions.parts]
        return list(dask.compute(*tasks, scheduler="threads"))

    def prepare(self, reader: Reader, partitions: Partitions) -> tuple[list[Any], list[Summary]]:
        """Return the prepared partitions and their summaries."""
        found = self.map(prepare_with_summary, partitions, reader)
        return [one[0] for one in found], [one[1] for one in found]

    def changed(
        self,
        function: Callable[..., Any],
        prepared: Sequence[Prepared],
        arguments: Sequence[tuple[Any, ...]],
        n_parts: int = 1,
    ) -> list[Part]:
        """Return parts of prepared partitions, or partitions with other features."""
        found = [function(one, *own) for one, own in zip(prepared, arguments, strict=True)]
        columns = [list(column) for column in zip(*found, strict=True)]
        return [(columns[2 * k], columns[2 * k + 1]) for k in range(n_parts)]

    def shards(
        self, prepared: Sequence[Prepared], atoms: Sequence[Array], totals: Sequence[Totals]
    ) -> LocalShards:
        """Return the shards; partitions without rows make none."""
        made = [
            make_shard(one, codes, None)
            for one, codes in zip(prepared, atoms, strict=True)
            if len(one.sample_weight)
        ]
        return LocalShards(made, n_threads=min(len(made), len(os.sched_getaffinity(0))))


@dataclass(frozen=True, eq=False)
class Client:
    """The workers of a distributed client.

    Parameters
    ----------
    client : distributed.Client
        The client.
    disk : {"auto"} or bool, default="auto"
        Whether features are kept in a file on the worker's disk and read in blocks. "auto" does
        that where all features need more than half the memory of the workers.
    """

    client: Any
    disk: str | bool = "auto"

    def map(self, function: Callable[..., Any], partitions: Partitions, *arguments: Any) -> list:
        """Return ``function(*arguments, *partition)`` of every partition."""
        return list(self.client.gather(self._submitted(function, partitions, *arguments)))

    def _submitted(
        self, function: Callable[..., Any], partitions: Partitions, *arguments: Any
    ) -> list[Any]:
        """Return futures of ``function(*arguments, *partition)``."""
        dask = import_extra("dask", "dask", "fairconstrained.dask")
        name = task_name(function)
        tasks = [
            dask.delayed(function, pure=False)(
                *arguments, *parts, dask_key_name=f"{name}-{uuid4().hex}"
            )
            for parts in partitions.parts
        ]
        return list(self.client.compute(tasks))

    def prepare(self, reader: Reader, partitions: Partitions) -> tuple[list[Any], list[Summary]]:
        """Return futures of the prepared partitions, and their summaries."""
        found = self._submitted(prepare, partitions, reader)
        return found, list(self.client.gather(self._each(Prepared.summary, found)))

    def _each(self, function: Callable[[Any], Any], futures: Sequence[Any]) -> list[Any]:
        """Return futures of a function of results."""
        return [
            self.client.submit(function, one, pure=False, key=f"{_NAME}-part-{uuid4().hex}")
            for one in futures
        ]

    def changed(
        self,
        function: Callable[..., Any],
        prepared: Sequence[Any],
        arguments: Sequence[tuple[Any, ...]],
        n_parts: int = 1,
    ) -> list[Part]:
        """Return futures of parts of partitions, or of these with other features, and totals."""
        name = task_name(function)
        found = [
            self.client.submit(function, one, *own, pure=False, key=f"{name}-{uuid4().hex}")
            for one, own in zip(prepared, arguments, strict=True)
        ]
        items = [self._each(itemgetter(k), found) for k in range(2 * n_parts)]
        return [(items[2 * k], list(self.client.gather(items[2 * k + 1]))) for k in range(n_parts)]

    def shards(
        self, prepared: Sequence[Any], atoms: Sequence[Array], totals: Sequence[Totals]
    ) -> RemoteShards:
        """Return the shards, futures on the workers; partitions without rows make none."""
        folder = "worker" if self._on_disk(totals) else None
        chosen = [
            (future, codes, int(one.counts.sum()))
            for future, codes, one in zip(prepared, atoms, totals, strict=True)
            if one.moments
        ]
        futures = [
            self.client.submit(
                make_shard, future, codes, folder, pure=False, key=f"{_NAME}-shard-{uuid4().hex}"
            )
            for future, codes, _ in chosen
        ]
        return RemoteShards(self.client, futures, sum(count for _, _, count in chosen))

    def _on_disk(self, totals: Sequence[Totals]) -> bool:
        if self.disk != "auto":
            return bool(self.disk)
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
        places, name = self._placed(), task_name(function)
        message = packed((function, *request))
        tasks = [
            self.client.submit(
                on_shards,
                message,
                *(self.futures[k] for k in own),
                pure=False,
                key=f"{name}-{uuid4().hex}",
                workers=[worker] if worker in self._places else None,
                allow_other_workers=worker in self._places,
            )
            for worker, own in places.items()
        ]
        found: dict[int, Sums] = {}
        results = self.client.gather(tasks)
        for own, (_, sums) in zip(places.values(), results, strict=True):
            found.update(zip(own, sums, strict=True))
        if [ran for ran, _ in results] != list(places):
            self._places.clear()
        self._release_later(tasks, [sums for _, sums in results])
        return [found[k] for k in range(len(self.futures))]

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
        See :class:`Client`.

    Raises
    ------
    ValueError
        If `disk` is neither "auto" nor a switch.
    """
    if not (isinstance(disk, bool | np.bool_) or (isinstance(disk, str) and disk == "auto")):
        raise ValueError(f"disk must be True, False or 'auto'; got {disk!r}.")
    if client is not None:
        return Client(client, disk)
    distributed = import_extra("distributed", "dask", "fairconstrained.dask")
    try:
        return Client(distributed.default_client(), disk)
    except ValueError:
        return Threads()
