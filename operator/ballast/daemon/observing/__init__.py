"""The newest reading of the cluster, and what only shows over several."""
