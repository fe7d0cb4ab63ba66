"""One port: the page, the JSON API under it, the metrics and the probes.  It reads the board and never the cluster."""
