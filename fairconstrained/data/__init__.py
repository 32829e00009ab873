"""From what a user passes to checked features, labels, groups and weights.

Checks and codes of what users pass belong here; what is computed from them belongs elsewhere.
"""
