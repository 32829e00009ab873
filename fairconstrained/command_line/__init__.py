"""The command ``python -m fairconstrained``: a comparison of two models on a file.

What belongs here: arguments, files, what is printed. What does not: anything that a program would
call.
"""

from fairconstrained.command_line._files import DataError, print_text
from fairconstrained.command_line._run import OPTION_OF, run

__all__ = ["OPTION_OF", "DataError", "print_text", "run"]
