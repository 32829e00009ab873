"""From what a user passes to checked features, labels, groups and weights."""
