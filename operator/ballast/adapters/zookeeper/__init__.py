"""ZooKeeper, for clusters that still have it."""
