"""What no plan can do better: the least bytes that it must copy (``bound``), and the ranges that it can meet (``reach``)."""
