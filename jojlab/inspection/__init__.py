"""The layers under a database or a directory of this machine, read before anything is measured."""
