"""Which moves start next: order, free disk space, and the rate that their brokers have left."""
