"""What several packages need and none of them owns: named objects, types, checks of arguments."""
