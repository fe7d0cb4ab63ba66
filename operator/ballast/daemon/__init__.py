"""The loop that checks, its metrics, its page."""
