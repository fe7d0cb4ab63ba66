"""``ballast simulate``."""
