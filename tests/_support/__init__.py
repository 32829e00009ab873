"""What the tests share: problems, data, and the list of all objects."""
