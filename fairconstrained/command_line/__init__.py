"""The command ``python -m fairconstrained``: a comparison on a file, or on example data.

What belongs here: arguments, files, the tables that are printed. What does not: anything that a
program would call.
"""

from fairconstrained.command_line._examples import EXAMPLES
from fairconstrained.command_line._files import DataError
from fairconstrained.command_line._own_data import run_own_data

__all__ = ["EXAMPLES", "DataError", "run_own_data"]
