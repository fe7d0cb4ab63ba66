"""What the daemon's parts share: the published view, the journal and the run controller."""
