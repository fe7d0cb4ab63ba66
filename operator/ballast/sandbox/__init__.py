"""A real Kafka on this machine's loopback, for a person to play with and for the tests."""
