"""Ballast keeps a live Kafka cluster balanced.

The layers, top to bottom: ``cli`` → ``app`` → ``wiring | sim`` → ``sandbox`` → ``settings`` → ``daemon | pipeline`` →
``executor | adapters`` → ``ports`` → ``core`` → ``errors``.  A package imports only packages below it.
"""

__version__ = "0.1.0"
