"""Traffic between racks: what it costs, and leaders where it costs less."""
