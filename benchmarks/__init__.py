"""Benchmarks of fairconstrained: ``python -m benchmarks`` lists them, with a name it runs one.

A module here is one benchmark, has one line in `registry.py`, and is named after what it measures.
What benchmarks share belongs in `harness`.
"""
