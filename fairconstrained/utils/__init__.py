"""What several packages need and none of them owns: named objects, types, checks of arguments.

What belongs to an idea of the library belongs in the package of that idea.
"""
