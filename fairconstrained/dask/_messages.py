"""What a round sends to workers: functions and arguments as bytes, terms once per change."""

from __future__ import annotations

import pickle
from functools import lru_cache
from io import BytesIO
from typing import Any, cast
from weakref import WeakKeyDictionary

from fairconstrained.terms.base import Term
from fairconstrained.utils.extras import import_extra

_TERMS = 256  # the terms of the last problems, which a worker keeps


def packed(value: Any) -> bytes:
    """Return a value as bytes, for :func:`unpacked` on a worker.

    Schedulers do not look into bytes, which takes longer than a round else. The bytes of a term are
    made once. A worker keeps the terms that it has read, with what they have computed.

    Parameters
    ----------
    value : object
        May have objects and functions that were defined in `__main__`.
    """
    cloudpickle = import_extra("cloudpickle", "dask", "fairconstrained.dask")
    out = BytesIO()
    writer = cloudpickle.Pickler(out)
    writer.persistent_id = _bytes_of_term
    writer.dump(value)
    return out.getvalue()


def unpacked(data: bytes) -> Any:
    """Return the value of :func:`packed`."""
    return _Reader(BytesIO(data)).load()


class _Reader(pickle.Unpickler):
    def persistent_load(self, pid: bytes) -> Term:
        """Return a term, the same one for the same bytes."""
        return _term(pid)


@lru_cache(_TERMS)
def _term(data: bytes) -> Term:
    return cast("Term", pickle.loads(data))


_known: WeakKeyDictionary[Term, bytes] = WeakKeyDictionary()


def _bytes_of_term(value: object) -> bytes | None:
    """Return the bytes of a term, None for other values."""
    if not isinstance(value, Term):
        return None
    if value not in _known:
        cloudpickle = import_extra("cloudpickle", "dask", "fairconstrained.dask")
        _known[value] = cloudpickle.dumps(value)
    return _known[value]
