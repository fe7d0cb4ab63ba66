"""A reading of a cluster, with its loads, as a file, and without a name in it."""
