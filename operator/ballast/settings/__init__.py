"""One YAML file and the environment become one frozen value."""
