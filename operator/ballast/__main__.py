"""The ``ballast`` command, also as ``python -m ballast``."""

from ballast.cli.main import main
from ballast.cli.process_end import run_to_its_end


def run() -> None:
    """The command line in a process of its own."""
    run_to_its_end(main)


if __name__ == "__main__":
    run()
