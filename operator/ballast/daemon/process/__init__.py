"""The process: its loops, its logs, the checks that keep the lock, observe and answer people, and how the parts are put together."""
