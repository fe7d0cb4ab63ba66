"""Executes a plan: a pure state machine and the driver that performs its effects."""
