"""Performs what the machine decides, and tells it what came of it."""
