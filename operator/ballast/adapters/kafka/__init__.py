"""Kafka's brokers, through confluent-kafka's admin client and, for what that lacks, kafka-python."""
