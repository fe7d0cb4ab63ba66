"""Tests that hold the simulator and every kind of cluster to the same promises; a package, so that the clusters end with the last of them."""
