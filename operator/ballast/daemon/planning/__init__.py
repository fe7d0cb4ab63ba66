"""Plans that the daemon makes by itself or is asked for."""
