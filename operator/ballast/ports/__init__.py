"""What the inside needs from the outside, as protocols; the real adapters and the simulator both implement them."""
