"""``ballast throttles``."""
