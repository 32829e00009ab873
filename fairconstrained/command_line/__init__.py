"""The command ``python -m fairconstrained``: a comparison on example data, or on a file.

What belongs here: arguments, files, the tables that are printed. What does not: anything that a
program would call.
"""

from fairconstrained.command_line._examples import EXAMPLES, SHOWN, run_example
from fairconstrained.command_line._files import DataError
from fairconstrained.command_line._own_data import run_own_data

__all__ = ["EXAMPLES", "SHOWN", "DataError", "run_example", "run_own_data"]
