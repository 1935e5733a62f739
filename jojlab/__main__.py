"""Runs `python -m jojlab` as `joj`."""

from jojlab.cli import main

main()
