"""The use cases: what a person asks Ballast to do, without a command line or a screen; they tell through a ``UserInterface``."""
