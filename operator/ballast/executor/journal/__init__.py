"""Runs and throttles as the journal keeps them."""
