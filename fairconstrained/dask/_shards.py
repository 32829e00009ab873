"""Who computes: the workers of a client, or the threads of this process."""

import os
import pickle
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np

from fairconstrained.dask._rows import Prepared, Totals, packed
from fairconstrained.shards.sums import LocalShards, Shard, Shards, Sums
from fairconstrained.utils.arguments import import_extra
from fairconstrained.utils.arrays import Array

_KEPT_BYTES = 1 << 20  # of results of past rounds
_KEPT_ROUNDS = 8  # dask computes them again as well if their worker ends


Part = tuple[list[Any], list[Totals]]  # prepared partitions, or references, and their totals


def make_shard(disk: bool, prepared: Prepared, atoms: Array) -> Shard:
    """Return the shard of a partition, whose atoms have positions among all.

    Dense features may be written to a file, which is read in blocks.
    """
    weight, X = prepared.sample_weight, prepared.X
    if disk and isinstance(X, np.ndarray):
        X = _on_disk(X)
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:  # it keeps memory for tables to come, where it has read the rows
        arrow.default_memory_pool().release_unused()
    weight = np.broadcast_to(1.0, weight.shape) if np.all(weight == 1.0) else weight
    return Shard(X, atoms[prepared.atoms], weight)


def _on_disk(X: Array) -> Array:
    """Return a copy of an array in a file that is removed when the array is."""
    folder = getattr(_worker(), "local_directory", None)
    handle, path = tempfile.mkstemp(suffix=".rows", dir=folder)
    os.close(handle)
    stored = np.memmap(path, dtype=X.dtype, mode="w+", shape=X.shape)
    stored[:] = X
    stored.flush()
    # The map keeps the file open; where that is not possible, it goes with the worker's folder.
    with suppress(OSError):
        os.unlink(path)
    return stored


def _worker() -> Any:
    """Return the worker that runs this, None outside of a worker."""
    try:
        return import_extra("distributed", "dask", "fairconstrained.dask").get_worker()
    except ValueError:
        return None


def on_shards(request: bytes, *shards: Shard) -> tuple[str, list[Any]]:
    """Return the worker that runs this, and :meth:`Shard.total` for its shards.

    It is one task of a round; the request are the arguments, :func:`packed`.
    """
    arguments = pickle.loads(request)
    return getattr(_worker(), "address", ""), [shard.total(*arguments) for shard in shards]


def _key(function: Any) -> str:
    """Return the key of a new task; a dashboard shows the name of the function."""
    name = getattr(getattr(function, "func", function), "__name__", "part")
    return f"fairconstrained-{name.strip('_').replace('_', '-')}-{uuid4().hex}"


class Workers:
    """What prepares partitions, keeps shards and computes sums over them.

    They are the workers of a client, those of the default client, or the threads of this process.
    `disk` is whether features are kept in a file on the worker's disk and read in blocks. "auto"
    does that where all features need more than half the memory of the workers; threads do not.
    """

    def __init__(self, client: Any, disk: str | bool):
        if not (isinstance(disk, bool | np.bool_) or (isinstance(disk, str) and disk == "auto")):
            raise ValueError(f"disk must be True, False or 'auto'; got {disk!r}.")
        if client is None:
            distributed = import_extra("distributed", "dask", "fairconstrained.dask")
            with suppress(ValueError):  # there is none
                client = distributed.default_client()
        self.client, self.disk = client, disk

    def map(self, function: Callable[..., Any], rows: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Return ``function(*row)`` of every row of arguments, perhaps delayed ones or futures."""
        return self.gather(self._futures(function, rows))

    def gather(self, futures: list[Any]) -> list[Any]:
        """Return the results of tasks."""
        return futures if self.client is None else list(self.client.gather(futures))

    def _futures(self, function: Any, rows: Iterable[tuple[Any, ...]]) -> list[Any]:
        dask = import_extra("dask", "dask", "fairconstrained.dask")
        call = dask.delayed(function, pure=False)
        tasks = [call(*row, dask_key_name=_key(function)) for row in rows]
        if self.client is None:
            return list(dask.compute(*tasks, scheduler="threads"))
        return list(self.client.compute(tasks))

    def part(self, function: Callable[..., Any], rows: Iterable[tuple[Any, ...]]) -> Part:
        """Return what a function makes of partitions, prepared ones, with their totals."""
        prepared = self._futures(function, rows)
        return prepared, self.map(Totals, zip(prepared))

    def shards(self, part: Part, atoms: Sequence[Array]) -> Shards:
        """Return the shards made of prepared partitions and the positions of their atoms.

        Partitions without rows make none.
        """
        call = partial(make_shard, self._on_disk(part[1]))
        chosen = [each for each in zip(*part, atoms, strict=True) if each[1].moments]
        shards = self._futures(call, [(prepared, positions) for prepared, _, positions in chosen])
        if self.client is None:
            return LocalShards(shards, n_threads=min(len(shards), len(os.sched_getaffinity(0))))
        return RemoteShards(
            self.client, shards, sum(int(each[1].sums["counts"].sum()) for each in chosen)
        )

    def _on_disk(self, totals: Sequence[Totals]) -> bool:
        if self.client is None or self.disk != "auto":
            return self.disk != "auto" and bool(self.disk)
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        memory = sum(worker["memory_limit"] for worker in workers)
        return bool(memory) and 2 * sum(each.n_bytes for each in totals) > memory


@dataclass(frozen=True, eq=False)
class RemoteShards(Shards):
    """Shards that are results of tasks on workers; a shard that is lost is made again by dask."""

    client: Any
    futures: list[Any]
    n_rows: int  # the number of rows in all of them
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
        size = sum(array.nbytes for sums in results for each in sums for array in each)
        self._done.extend(tasks)
        n_rounds = len(self._done) // len(tasks)
        if n_rounds * size > _KEPT_BYTES or n_rounds >= _KEPT_ROUNDS:
            self._done.clear()
