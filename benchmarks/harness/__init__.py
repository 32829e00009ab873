"""What the benchmarks share: options, data, problems, timing, runs of solvers, tables, figures.

Whatever only one benchmark needs belongs in that benchmark.
"""
