"""Rows in shards: sums over rows that are computed shard by shard and then added.

What belongs here: shards of rows, the sums that terms need of them, and the linear model whose rows
are in shards. What does not: where shards are kept and who computes them, beyond threads of this
process (:mod:`fairconstrained.dask` has workers and collections).
"""
