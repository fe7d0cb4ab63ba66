"""``ballast apply``."""
