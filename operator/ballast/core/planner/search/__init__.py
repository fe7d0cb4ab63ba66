"""The search: compiled kernels, the world they change, and the order in which they run."""
