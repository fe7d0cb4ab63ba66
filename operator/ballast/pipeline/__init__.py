"""Samples in, load model and fleet reports out, on Spark; never touches a cluster."""
