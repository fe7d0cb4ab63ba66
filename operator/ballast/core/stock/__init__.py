"""The files and answers of Kafka's own reassignment tool."""
