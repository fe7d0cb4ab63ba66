"""What the daemon's parts share: the published view, figures, health, the journal and the run controller."""
