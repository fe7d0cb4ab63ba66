"""The pure state machine of a run: ``(run, event, now) -> (run, effects)``."""
