"""The only room that puts real parts together."""
