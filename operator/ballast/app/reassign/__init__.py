"""The use cases of ``ballast reassign``: what kafka-reassign-partitions does, under Ballast's lock, journal and guards."""
