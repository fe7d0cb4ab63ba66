"""What is asked and of which cluster, as arrays: scope, fair shares, ranges."""
