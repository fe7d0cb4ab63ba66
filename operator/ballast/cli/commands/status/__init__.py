"""``ballast status``."""
