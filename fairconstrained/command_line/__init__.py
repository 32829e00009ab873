"""The command ``python -m fairconstrained``: a comparison on example data, or on a file.

What belongs here: arguments, files, the tables that are printed. What does not: anything that a
program would call.
"""
