"""The least bytes that any plan must copy: ``bound`` tells it, by the programs and prices of the other modules."""
