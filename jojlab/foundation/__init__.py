"""The ground of every other room, with errors, places, tools, hashes and the cache."""
