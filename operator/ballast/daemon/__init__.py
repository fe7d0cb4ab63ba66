"""The loop that ticks, its metrics, its page."""
