"""Reading the cluster and measuring it."""
