"""The full tier: what `make test-all` runs and `make test` does not, as it takes too long."""
