"""``ballast topics``."""
