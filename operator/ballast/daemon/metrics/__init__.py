"""``/metrics`` and its page of documentation."""
