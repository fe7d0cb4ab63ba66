"""The process: its loops, its lock, its probes and its logs."""
