"""``ballast reassign``: the options, answers and exit codes of kafka-reassign-partitions."""
