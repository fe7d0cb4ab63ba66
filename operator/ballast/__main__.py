"""``python -m ballast`` is the ``ballast`` command."""

from ballast.cli.main import main

if __name__ == "__main__":
    main()
