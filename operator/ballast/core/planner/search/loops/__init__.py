"""The search's compiled loops over flat arrays (``ballast.core.compiled``)."""
