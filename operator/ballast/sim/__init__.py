"""A simulated cluster behind the same ports, and the scenarios that run on it."""
