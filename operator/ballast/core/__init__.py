"""Decisions without effects: no clock, no socket, no thread, no logging, no client library."""
