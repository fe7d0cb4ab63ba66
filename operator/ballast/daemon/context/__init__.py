"""What the daemon's parts share: the view that is published and the collaborators."""
