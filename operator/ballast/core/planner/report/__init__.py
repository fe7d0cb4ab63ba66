"""What people read of a plan: its obstacles, its figures, why each move is there, and a page about it."""
