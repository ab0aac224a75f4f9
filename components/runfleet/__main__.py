"""``python -m runfleet``: the same as the command ``runfleet``."""

from runfleet.cli.main import run

if __name__ == "__main__":
    run()
