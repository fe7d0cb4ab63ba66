"""Carries a plan out: a pure state machine and the driver that performs its effects."""
