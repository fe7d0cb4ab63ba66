"""Tests on brokers in containers; a package, so that what they share ends with the last of them."""
