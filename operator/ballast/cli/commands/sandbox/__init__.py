"""``ballast sandbox``."""
