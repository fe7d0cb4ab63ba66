"""The journal: a compacted topic with a transactional producer, or a file."""
