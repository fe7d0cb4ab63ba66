"""The command line: thin over the same functions the daemon runs."""
