"""Judges a finished plan by code that the search does not share: ``check`` of ``checker`` is the whole call."""
