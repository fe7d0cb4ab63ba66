"""Samples and tables in a Delta store, and what Prometheus adds to them."""
