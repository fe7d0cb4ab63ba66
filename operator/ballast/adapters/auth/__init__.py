"""Client properties, certificates and tokens, for all clients."""
