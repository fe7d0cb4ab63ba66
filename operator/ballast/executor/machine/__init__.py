"""The pure state machine of a run: nothing here knows a clock, a socket or a thread."""
