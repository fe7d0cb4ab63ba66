"""What is asked and of which cluster, as arrays: scope, fair shares, ranges, and how near to these any plan can come."""
