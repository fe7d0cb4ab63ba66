"""Puts real parts together, for the commands and the daemon."""
