"""``ballast fleet``."""
