"""joj import: what other tools recorded. One file for each kind."""
