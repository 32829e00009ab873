"""Random problems and settings, each fit checked by formulas written independently of the library.

``python -m benchmarks fuzz --seed 0 --seconds 120`` runs it; ``--reproduce SEED:INDEX`` runs one
case again. What belongs here: the generator (`data`, `settings`), the formulas (`formulas`,
`rates`), the checks (`checks`, `relations`, `descent`), and what fits, runs and counts (`fitting`,
`command`). Of the library only its public classes are used.
"""
