"""Runs and throttles as the journal keeps them, and what is noted while they are kept."""
